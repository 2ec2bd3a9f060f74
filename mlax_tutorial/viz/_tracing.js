(()=>{for(const root of document.querySelectorAll(".NAME:not([data-ready])")){
root.dataset.ready="1";
const {steps,error}=JSON.parse(root.dataset.trace),one=s=>root.querySelector(".viz-trace-"+s);
const lines=[...root.querySelectorAll(".viz-trace-source>li")],equations=[...root.querySelectorAll(".viz-trace-equations>li:not(.viz-trace-none)")];
const range=root.querySelector("input"),toggle=one("toggle"),program=one("program"),panes=one("panes"),end=one("end");
let now=0;
const plural=n=>n===1?"1 equation":n+" equations";
function show(step){
now=Math.max(0,Math.min(steps.length,step));
const done=new Set(steps.slice(0,now).flatMap(s=>s[1])),at=now?steps[now-1]:null;
lines.forEach((l,i)=>{const on=at!==null&&at[0]===i;l.classList.toggle("viz-trace-now",on);on?l.setAttribute("aria-current","step"):l.removeAttribute("aria-current")});
equations.forEach((e,i)=>{e.classList.toggle("viz-trace-later",!done.has(i));e.classList.toggle("viz-trace-now",at!==null&&at[1].includes(i))});
end.classList.toggle("viz-trace-later",now<steps.length);
range.value=now;one("previous").disabled=now===0;one("next").disabled=now===steps.length;
let text=now===0?"Before the first line: only the inputs are known, by shape and dtype.":`${at[0]<0?"Step":"Line"} ${now} of ${steps.length}${at[0]<0?"":" executed"}: `;
if(at)text+=at[1].length?`it adds ${plural(at[1].length)}.`:at[2]&1?"it is part of an inner function; what it records stands inside another equation.":at[2]?"JAX computes it at once, and records nothing.":"it adds no equation; Python alone ran it.";
if(now===steps.length)text+=error?" Here tracing stopped: "+error:` ${plural(equations.length)} in all.`;
one("status").textContent=text}
function swap(){const on=toggle.getAttribute("aria-pressed")!=="true";toggle.setAttribute("aria-pressed",on);program.hidden=!on;panes.hidden=on;panes.style.display=on?"none":""}
one("next").onclick=()=>show(now+1);one("previous").onclick=()=>show(now-1);range.oninput=()=>show(+range.value);
root.onkeydown=e=>{const go={ArrowRight:now+1,ArrowLeft:now-1,Home:0,End:steps.length}[e.key];if(go===undefined||e.target===range)return;e.preventDefault();e.stopPropagation();show(go)};
if(toggle){toggle.onclick=swap;program.hidden=true}
one("bar").hidden=false;show(0)}})();
