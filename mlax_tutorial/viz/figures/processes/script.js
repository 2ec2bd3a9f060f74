function begin(root,data){
const runs=[...root.querySelectorAll(".viz-processes-run")],range=root.querySelector(".viz-range");
function walk(which){
const run=runs[which],said=data[which],bars=[...run.querySelectorAll("i[data-call]")],items=[...run.querySelectorAll("details li")];
runs.forEach(each=>each.hidden=each!==run);
if(!range)return;
range.max=said.length-1;
steps(root,said.length-1,0,now=>{
bars.forEach(bar=>{const on=+bar.dataset.call===now;bar.classList.toggle("viz-now",on);bar.classList.toggle("viz-processes-faint",now>0&&!on)});
items.forEach((item,i)=>item.classList.toggle("viz-processes-said",i===now-1));
return said[now]})}
walk(0);
for(const name of root.querySelectorAll(".viz-processes-name"))name.hidden=true;
if(runs.length>1)tuned(root,[],walk)}
