function begin(root,{steps:made,error}){
const one=s=>root.querySelector(".viz-trace-"+s),lines=[...root.querySelectorAll(".viz-trace-source>li")],equations=[...root.querySelectorAll(".viz-trace-equations>li:not(.viz-trace-none)")];
const toggle=one("toggle"),program=one("program"),panes=one("panes"),end=one("end"),plural=n=>n===1?"1 equation":n+" equations";
function draw(now){
const done=new Set(made.slice(0,now).flatMap(s=>s[1])),at=now?made[now-1]:null;
lines.forEach((l,i)=>{const on=at!==null&&at[0]===i;l.classList.toggle("viz-now",on);on?l.setAttribute("aria-current","step"):l.removeAttribute("aria-current")});
equations.forEach((e,i)=>{e.classList.toggle("viz-later",!done.has(i));e.classList.toggle("viz-now",at!==null&&at[1].includes(i))});
end.classList.toggle("viz-later",now<made.length);
let text=at?`${at[0]<0?"Step":"Line"} ${now} of ${made.length}${at[0]<0?"":" executed"}: `:"Before the first line: only the inputs are known, by shape and dtype. Press ▶, and watch which lines add an equation.";
if(at)text+=at[1].length?`it adds ${plural(at[1].length)}.`:at[2]&1?"it is part of an inner function; what it records stands inside another equation.":at[2]?"JAX computes it at once, and records nothing.":"it adds no equation; Python alone ran it.";
if(now===made.length)text+=error?" Here tracing stopped: "+error:` ${plural(equations.length)} in all.`;
return text}
if(toggle){program.hidden=true;toggle.onclick=()=>{const on=toggle.getAttribute("aria-pressed")!=="true";toggle.setAttribute("aria-pressed",on);program.hidden=!on;panes.hidden=on;panes.style.display=on?"none":""}}
steps(root,made.length,0,draw)}
