"""The inspection finds what is wrong: a page with each fault, and one with none."""

import pytest

from tools.site import browser, inspection

SOUND = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Sound</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"></head>
<body><main><h1>Sound</h1>{}</main></body></html>"""

FAULTS = {
    "outside": '<img alt="far" src="http://example.com/far.png">',
    "errors": "<script>console.error('wrong')</script>",
    "violations": '<p style="color: #bbb; background: #fff">hardly legible</p>',
    "unnamed": '<svg viewBox="0 0 9 9" width="9"><path d="M0 0h9v9z"/></svg>',
    "wide": '<div style="width: 500px">too wide</div>',
    "transfers": '<script src="heavy.js"></script>',
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken")
    (folder / "heavy.js").write_text("//" + "x" * 400_000)
    (folder / "sound.html").write_text(SOUND.format("<p>All is well.</p>"))
    for fault, body in FAULTS.items():
        (folder / f"{fault}.html").write_text(SOUND.format(body))
    with browser.serve(folder) as served:
        yield served


def test_a_sound_page_passes(chromium, broken):
    seen = inspection.inspect(chromium, broken, "sound.html")
    assert not (seen.outside or seen.errors or seen.violations or seen.unnamed or any(seen.wide.values())), (
        seen
    )
    assert list(seen.transfers) == [f"{broken}/sound.html"]


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "transfers"])
def test_a_fault_is_found(chromium, broken, fault):
    found = getattr(inspection.inspect(chromium, broken, f"{fault}.html"), fault)
    assert found[390] if fault == "wide" else found


def test_a_missing_file_is_found(chromium, broken):
    assert any("404" in error for error in inspection.inspect(chromium, broken, "nowhere.html").errors)


def test_a_heavy_request_is_weighed(chromium, broken):
    assert inspection.inspect(chromium, broken, "transfers.html").transfers[f"{broken}/heavy.js"] > 400_000
