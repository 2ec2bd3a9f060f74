function begin(root,data){
const bars=root.querySelector(".viz-ranges-bars"),rows=[...root.querySelectorAll("tbody tr:not(.viz-ranges-own)")];
let own=()=>{};
const draw=steps(root,data.cells[0].length-1,0,now=>{
bars.setAttribute("transform",`translate(${now*data.unit} 0)`);
rows.forEach((row,i)=>data.cells[i][now].forEach((text,j)=>{row.cells[j+1].textContent=text}));
own(now);
return now?`All numbers times 2 to the power of ${now}: ${(2**now).toLocaleString("en-US")}.`:"The numbers as they are."});
if(data.tune){own=tune(root,data.tune,draw);draw()}}
// a positive number to the nearest of a format, halfway to the even one, as IEEE 754 says
function rounded(x,exponent,fraction){
const bias=2**(exponent-1)-1;
if(x===Infinity)return x;
let e=Math.floor(Math.log2(x));if(2**e>x)e-=1;else if(2**(e+1)<=x)e+=1;
const gap=2**(Math.max(e,1-bias)-fraction),count=x/gap;
let whole=Math.floor(count);const rest=count-whole;if(rest>.5||rest===.5&&whole%2)whole+=1;
return whole*gap>(2-2**-fraction)*2**bias?Infinity:whole*gap}
function counts(values,scale,exponent,fraction){
const normal=2**(2-2**(exponent-1)),n={zero:0,subnormal:0,large:0,exact:0};
for(const value of values){const x=value*scale,y=rounded(x,exponent,fraction);if(y===0)n.zero+=1;else if(y===Infinity)n.large+=1;else if(y<normal)n.subnormal+=1;if(y===x&&y!==Infinity)n.exact+=1}
return n}
function percent(count,of){const share=count/of;return !count?"none":count===of?"all":share<.001?"<0.1%":share>.999?">99.9%":(100*share).toFixed(1)+"%"}
function tune(root,t,draw){
const box=root.querySelector(".viz-tune"),[exponent,fraction]=box.querySelectorAll("input"),list=box.querySelector("select");
const bytes=Uint8Array.from(atob(t.kept),letter=>letter.charCodeAt(0)).buffer,values=t.bytes===4?new Float32Array(bytes):new Float64Array(bytes);
const row=root.querySelector(".viz-ranges-own"),said=root.querySelector(".viz-ranges-said"),[thin,band]=[".viz-ranges-thin",".viz-ranges-band"].map(name=>[...root.querySelectorAll(name)].at(-1));
const [low,high,wide]=t.window,place=power=>(Math.min(Math.max(power,low),high)-low)*wide/(high-low);
const name=()=>Object.keys(t.known).find(key=>t.known[key][0]===+exponent.value&&t.known[key][1]===+fraction.value);
tuned(root,[],()=>{list.value=name()||list.options[0].value;draw()});
list.oninput=()=>{const bits=t.known[list.value];if(bits)[exponent.value,fraction.value]=bits;draw()};
said.hidden=false;
return now=>{
const e=+exponent.value,f=+fraction.value,bias=2**(e-1)-1,n=counts(values,2**now,e,f),of=values.length,known=name();
[n.zero,n.subnormal,n.large].forEach((count,i)=>{row.cells[i+1].textContent=percent(count,of)});
[[thin,1-bias-f,1-bias],[band,1-bias,bias+1]].forEach(([mark,from,to])=>{mark.setAttribute("x",place(from));mark.setAttribute("width",place(to)-place(from))});
for(const input of [exponent,fraction]){input.nextElementSibling.textContent=input.value;input.setAttribute("aria-valuetext",input.value)}
said.textContent=`Yours has 1 sign bit, ${e} exponent bits and ${f} fraction bit${f===1?"":"s"}, ${1+e+f} in all${known?`, as ${known} has`:""}. Becomes 0: ${percent(n.zero,of)}; loses digits: ${percent(n.subnormal,of)}; too large: ${percent(n.large,of)}; kept exactly: ${percent(n.exact,of)}. A number that keeps its digits is off by at most 1 part in ${(2**(f+1)).toLocaleString("en-US")}.`}}
