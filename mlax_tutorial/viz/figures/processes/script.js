function begin(root,data){
const bars=[...root.querySelectorAll("i[data-call]")],items=[...root.querySelectorAll("details li")];
steps(root,data.length-1,0,now=>{
bars.forEach(bar=>{const on=+bar.dataset.call===now;bar.classList.toggle("viz-now",on);bar.classList.toggle("viz-processes-faint",now>0&&!on)});
items.forEach((item,i)=>item.classList.toggle("viz-processes-said",i===now-1));
return data[now]})}
