// softmax(scores / temperature) of the allowed keys, from the weights at temperature 1: their logarithms are the scores, but for a constant
function weigh(weights,temperature,allowed){
const may=weights.map((w,i)=>w>0&&allowed[i]),most=Math.max(...weights.filter((_,i)=>may[i])),parts=weights.map((w,i)=>may[i]?Math.exp((Math.log(w)-Math.log(most))/temperature):0);
const sum=parts.reduce((a,b)=>a+b,0);return sum?parts.map(part=>part/sum):parts}
// the map as the page has it: a path for each level of color
function cells(rows){const levels=Array.from({length:9},()=>"");
rows.forEach((row,y)=>row.forEach((w,x)=>{levels[Math.ceil(w*8-.16)]+=`M${x} ${y}h1v1h-1z`}));
return levels.map((d,level)=>level&&d?`<path fill-opacity="${level/8}" d="${d}"/>`:"").join("")}
function begin(root,data){
const heads=[...root.querySelectorAll(".viz-attention-heads button")],map=root.querySelector(".viz-attention-map"),row=root.querySelector(".viz-attention-row");
const query=root.querySelector(".viz-attention-query b"),chips=[...root.querySelectorAll(".viz-attention-keys li")],last=data.queries.length-1,tune=data.weights!==undefined;
const brief=text=>text.length<=12?text:text.slice(0,11)+"…";let head=0,percent=data.percent,set="";
const whole=tune?new Float32Array(Uint8Array.from(atob(data.weights),c=>c.charCodeAt(0)).buffer):[],rows=list=>data.queries.map((_,i)=>Array.from(list.slice(i*chips.length,(i+1)*chips.length)));
const given=tune?heads.map((_,i)=>rows(whole.slice(i*chips.length*(last+1)))):[];
function compute(temperature,mask){
const allowed=rows([...data.allowed[mask]].map(Number)),plain=temperature===1&&!mask;
const now=given.map(matrix=>plain?matrix:matrix.map((weights,i)=>weigh(weights,temperature,allowed[i])));
percent=now.map(matrix=>matrix.map(weights=>weights.map(w=>Math.round(100*w))));
heads.forEach((button,i)=>{button.querySelector("g").innerHTML=cells(now[i])});
map.innerHTML=heads[head].querySelector("g").innerHTML;
set=`, temperature ${temperature}, ${mask?"mask: "+data.masks[mask]:"no mask"}`}
if(tune)compute(1,0);
const again=steps(root,last,Math.floor((last+1)/2),now=>{
const shares=percent[head][now];
row.setAttribute("y",+row.dataset.top+now*row.dataset.size);query.textContent=brief(data.queries[now]);
chips.forEach((chip,i)=>{chip.style.setProperty("--w",Math.max(0,shares[i])/100);chip.querySelector("i").textContent=shares[i]>=1?shares[i]:""});
const most=shares.map((share,i)=>[share,i]).filter(([share])=>share>=1).sort((a,b)=>b[0]-a[0]||a[1]-b[1]).slice(0,3).map(([share,i])=>`${data.keys[i]} ${share} %`);
return `${data.heads[head][0].toUpperCase()+data.heads[head].slice(1)}${set}. Query ${now} of ${last}, ${data.queries[now]}: ${shares.includes(-1)?"not finite":most.join(", ")||"looks at nothing"}`});
heads.forEach((button,i)=>{button.onclick=()=>{head=i;heads.forEach((other,j)=>other.setAttribute("aria-pressed",i===j));map.innerHTML=button.querySelector("g").innerHTML;again()}});
if(tune)tuned(root,[at=>String(data.temperatures[at])],(at,mask)=>{compute(data.temperatures[at],mask);again()})}
