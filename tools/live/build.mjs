// Makes the one script that a live page loads, and the one that sets the formulas of all pages, with the licenses of what is in them:
// `make live-bundle`.
//
// The same sources and the same locked packages give the same bytes. The first line names a hash of both.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const project = process.argv[2] ?? join(here, "..", "..");
const places = { index: ["mlax_tutorial/live/static", "live.js"], mathjax: ["book/_static/mathjax", "mathjax.js"] };

const within = (folder) => readdirSync(join(here, folder)).map((name) => `${folder}/${name}`);
const sources = ["build.mjs", "package-lock.json", "package.json", ...within("licenses"), ...within("src")].sort();
const hash = createHash("sha256");
for (const name of sources) hash.update(name).update(readFileSync(join(here, name)));

const digest = hash.digest("hex");
for (const [source, [place, script]] of Object.entries(places)) {
  const out = join(project, place);
  const { metafile } = await build({
    absWorkingDir: here,
    entryPoints: [`src/${source}.js`],
    outfile: join(out, script),
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    legalComments: "none",
    metafile: true,
    define: { "process.env.NODE_ENV": '"production"', PACKAGE_VERSION: '""' },
    banner: { js: `/* Built from tools/live, ${digest}; licenses of what is in it: LICENSES.txt */` },
  });

  const packages = new Set(Object.keys(metafile.inputs)
    .map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean));
  const texts = [...packages].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json")));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    // Some packages leave the text to the repository that they come from; it stands in `licenses`.
    const text = file ? join(folder, file) : join(here, "licenses", name.split("/")[0]);
    return `${name} ${version}: ${license}\n\n${readFileSync(text, "utf8").trim()}\n`;
  });
  writeFileSync(join(out, "LICENSES.txt"), `${script} holds parts of these packages.\n\n${texts.join(`\n${"-".repeat(72)}\n\n`)}`);
}
