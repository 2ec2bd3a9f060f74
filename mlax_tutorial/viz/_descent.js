function begin(root,data){
const panes=[...root.querySelectorAll(".viz-descent-panes > div > svg")].map(svg=>[...svg.querySelectorAll("polyline")].map((line,i)=>({line,mark:svg.querySelectorAll("g")[i],points:line.getAttribute("points").split(" ")})));
const rows=[...root.querySelectorAll("tbody tr")],last=data.steps.length-1;
steps(root,last,last,now=>{
panes.flat().forEach(({line,mark,points})=>{const past=points.slice(0,now+1);line.setAttribute("points",past.join(" "));mark.setAttribute("transform",`translate(${past.at(-1)||"-9999,-9999"})`)});
data.paths.forEach((path,i)=>{rows[i].querySelector(".viz-descent-at").textContent=path.at[now];rows[i].querySelector(".viz-descent-loss").textContent=path.loss[now]});
return `Step ${data.steps[now]} of ${data.steps[last]}: `+data.names.map((name,i)=>`${name} ${data.paths[i].loss[now]}`).join(", ")})}
