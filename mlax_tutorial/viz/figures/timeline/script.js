function begin(root){
const runs=[...root.querySelectorAll(".viz-timeline-run")],calls=runs.flatMap(run=>[...run.querySelectorAll("[data-said]")].map(host=>[host,...[...run.querySelectorAll("i")].filter(bar=>bar!==host&&bar.dataset.call===host.dataset.call)]));
steps(root,calls.length,0,now=>{
calls.flat().forEach(bar=>bar.classList.remove("viz-now"));
if(!now)return "Step through the calls: each is marked where the host makes it, and where the device works for it.";
calls[now-1].forEach(bar=>bar.classList.add("viz-now"));
return calls[now-1][0].dataset.said})}
