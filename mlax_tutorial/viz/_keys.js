(()=>{for(const root of document.querySelectorAll(".NAME:not([data-ready])")){
root.dataset.ready="1";
const {steps}=JSON.parse(root.dataset.keys),one=s=>root.querySelector(".viz-keys-"+s);
const nodes=[...root.querySelectorAll(".viz-keys-node")],edges=new Map([...root.querySelectorAll(".viz-keys-edge")].map(e=>[e.dataset.of,e]));
const wrong=nodes.filter(n=>n.classList.contains("viz-keys-wrong")),why=n=>n.querySelector(".viz-keys-why");
const range=root.querySelector("input"),status=one("status"),verdict=one("verdict");
let now=steps.length,at=-1;
function say(text,source){status.textContent=text;if(source){const c=document.createElement("code");c.textContent=source;status.append(document.createElement("br"),c)}}
function clear(){at=-1;for(const x of root.querySelectorAll(".viz-keys-on"))x.classList.remove("viz-keys-on")}
function reach(n){const pane=one("scroll"),box=n.getBoundingClientRect(),p=pane.getBoundingClientRect();if(box.left<p.left)pane.scrollLeft-=p.left-box.left+8;else if(box.right>p.right)pane.scrollLeft+=box.right-p.right+8}
function show(step,first){
clear();now=Math.max(0,Math.min(steps.length,step));
for(const n of nodes){const s=+n.dataset.step,e=edges.get(n.dataset.number);n.classList.toggle("viz-keys-later",s>now);e&&e.classList.toggle("viz-keys-later",s>now);n.classList.toggle("viz-keys-now",now>0&&s===now&&!first);if(now>0&&s===now&&!first)reach(n)}
for(const n of wrong){const bad=+n.dataset.wrong<=now;n.classList.toggle("viz-keys-wrong",bad);why(n).style.visibility=bad?"":"hidden"}
verdict.style.visibility=now===steps.length?"":"hidden";
const had=document.activeElement,back=one("previous"),on=one("next");range.value=now;back.disabled=now===0;on.disabled=now===steps.length;if(had===back&&back.disabled)on.focus();if(had===on&&on.disabled)back.focus();
if(now===0)say("Before the first use: only the keys that are given.");else{const bad=wrong.some(n=>+n.dataset.wrong===now);say(`Use ${now} of ${steps.length}. ${steps[now-1][0]}${bad?". A key is used wrongly here.":""}`,steps[now-1][1])}}
function pick(i){clear();at=i;let n=nodes[i];say(n.dataset.said,n.dataset.source);for(;;){n.classList.add("viz-keys-on");const e=edges.get(n.dataset.number);e&&e.classList.add("viz-keys-on");const p=+n.dataset.parent;if(p<0)break;n=nodes[p]}reach(nodes[i])}
const kids=i=>nodes.map((n,j)=>+n.dataset.parent===i?j:-1).filter(j=>j>=0&&!nodes[j].classList.contains("viz-keys-later"));
nodes.forEach((n,i)=>n.onclick=()=>at===i?show(now):pick(i));
one("next").onclick=()=>show(now+1);one("previous").onclick=()=>show(now-1);range.oninput=()=>show(+range.value);
root.onkeydown=e=>{if(e.target===range)return;
if(e.target===one("scroll")){let to;if(at<0)to=e.key.startsWith("Arrow")?kids(-1)[0]:undefined;else{const p=+nodes[at].dataset.parent,row=kids(p),k=row.indexOf(at);to={ArrowRight:kids(at)[0],ArrowLeft:p<0?undefined:p,ArrowDown:row[k+1],ArrowUp:row[k-1]}[e.key];if(e.key==="Escape"){show(now);return}}
if(to!==undefined){e.preventDefault();e.stopPropagation();pick(to)}else if(e.key.startsWith("Arrow")){e.preventDefault();e.stopPropagation()}return}
const go={ArrowRight:now+1,ArrowLeft:now-1,Home:0,End:steps.length}[e.key];if(go===undefined)return;e.preventDefault();e.stopPropagation();show(go)};
one("bar").hidden=false;show(steps.length,true);say(steps.length===1?"One use of a key. Press ◀ to step back, or tap a node.":`${steps.length} uses of keys. Press ◀ to step back, or tap a node.`)}})();
