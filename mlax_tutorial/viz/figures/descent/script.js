function begin(root,data){
const panes=[...root.querySelectorAll(".viz-descent-panes > div > svg")].map(svg=>[...svg.querySelectorAll("polyline")].map((line,i)=>({line,mark:svg.querySelectorAll("g")[i],points:line.getAttribute("points").split(" ")})));
const rows=[...root.querySelectorAll("tbody tr")],last=data.steps.length-1;
const draw=steps(root,last,last,now=>{
panes.flat().forEach(({line,mark,points})=>{const past=points.slice(0,now+1);line.setAttribute("points",past.join(" "));mark.setAttribute("transform",`translate(${past.at(-1)||"-9999,-9999"})`)});
data.paths.forEach((path,i)=>{rows[i].querySelector(".viz-descent-at").textContent=path.at[now];rows[i].querySelector(".viz-descent-loss").textContent=path.loss[now]});
return `Step ${data.steps[now]} of ${data.steps[last]}: `+data.names.map((name,i)=>`${name}: ${data.paths[i].loss[now]}`).join("; ")});
if(data.tune)follow(root,data,panes.map(lines=>lines.at(-1)),draw)}
// three digits, as Python's :.3g
function digits(x){if(!x)return "0";const [most,power]=x.toExponential(2).split("e");return power>=-4&&power<3?String(+x.toPrecision(3)):`${+most}e${power<0?"-":"+"}${String(Math.abs(power)).padStart(2,"0")}`}
// heavy-ball gradient descent on a quadratic: v = momentum v + gradient, w = w - rate v
function walk({constant,slope,curvature,start},rate,momentum,count){
let w=start,v=[0,0];const path=[];
for(let step=0;step<=count;step++){
const g=slope.map((s,i)=>s+curvature[i][0]*w[0]+curvature[i][1]*w[1]);
const loss=constant+(slope[0]+g[0])*w[0]/2+(slope[1]+g[1])*w[1]/2;
if(![...w,loss].every(x=>Number.isFinite(Math.fround(x))))break;
path.push({w,loss});
v=v.map((x,i)=>momentum*x+g[i]);w=w.map((x,i)=>x-rate*v[i])}
return path}
function follow(root,data,[map,curve],draw){
const t=data.tune,[x0,y0,x1,y1]=t.map,{steps:count,low,high,floor}=t.curve,pixels=(x,y)=>[x,y].map(value=>+Math.min(Math.max(value,-9999),9999).toFixed(1)).join(",");
const level=loss=>((floor===null?loss:Math.log10(Math.max(loss,floor)))-low)/(high-low);
tuned(root,[at=>String(t.rates[at]),at=>(at/100).toFixed(2)],(rate,momentum)=>{
const path=walk(t,t.rates[rate],momentum/100,data.steps.at(-1)),known=data.steps.filter(step=>step<path.length).map(step=>[step,path[step]]);
map.points=known.map(([,{w}])=>pixels(x0+(x1-x0)*w[0],y0+(y1-y0)*w[1]));
curve.points=known.map(([step,{loss}])=>pixels(58+392*step/count,8+136*(1-Math.min(level(loss),1.3))));
const fill=(words,rest)=>data.steps.map((step,i)=>i<known.length?words(known[i][1]):rest);
data.paths[data.paths.length-1]={at:fill(({w})=>`(${w.map(digits).join(", ")})`,"–"),loss:fill(({loss})=>digits(loss),"not finite")};
draw()})}
