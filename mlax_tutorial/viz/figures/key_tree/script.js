function begin(root,{steps:uses}){
const one=s=>root.querySelector(s),nodes=[...root.querySelectorAll(".viz-key-tree-node")],edges=new Map([...root.querySelectorAll(".viz-key-tree-edge")].map(e=>[e.dataset.of,e]));
const wrong=nodes.filter(n=>n.classList.contains("viz-key-tree-wrong")),status=one(".viz-status"),verdict=one(".viz-key-tree-verdict"),pane=one(".viz-scroll");
let at=-1;
function say(text,source){status.textContent=text;if(source){const c=document.createElement("code");c.textContent=source;status.append(document.createElement("br"),c)}}
function clear(){at=-1;for(const x of root.querySelectorAll(".viz-key-tree-on"))x.classList.remove("viz-key-tree-on")}
function reach(n){const box=n.getBoundingClientRect(),p=pane.getBoundingClientRect();if(box.left<p.left)pane.scrollLeft-=p.left-box.left+8;else if(box.right>p.right)pane.scrollLeft+=box.right-p.right+8}
function draw(now,first){
clear();
for(const n of nodes){const s=+n.dataset.step,e=edges.get(n.dataset.number),on=now>0&&s===now&&!first;n.classList.toggle("viz-later",s>now);e&&e.classList.toggle("viz-later",s>now);n.classList.toggle("viz-now",on);if(on)reach(n)}
for(const n of wrong){const bad=+n.dataset.wrong<=now;n.classList.toggle("viz-key-tree-wrong",bad);n.querySelector(".viz-key-tree-why").style.visibility=bad?"":"hidden"}
verdict.style.visibility=now===uses.length?"":"hidden";
if(first)say(`${uses.length===1?"One use of a key":uses.length+" uses of keys"}. Look for a thick red frame: a key that is used wrongly. Press ◀ to step back, or tap a node.`);
else if(now===0)say("Before the first use: only the keys that are given.");
else say(`Use ${now} of ${uses.length}. ${uses[now-1][0]}${wrong.some(n=>+n.dataset.wrong===now)?". A key is used wrongly here.":""}`,uses[now-1][1])}
function pick(i){clear();at=i;let n=nodes[i];say(n.dataset.said,n.dataset.source);for(;;){n.classList.add("viz-key-tree-on");const e=edges.get(n.dataset.number);e&&e.classList.add("viz-key-tree-on");const p=+n.dataset.parent;if(p<0)break;n=nodes[p]}reach(nodes[i])}
const kids=i=>nodes.map((n,j)=>+n.dataset.parent===i?j:-1).filter(j=>j>=0&&!nodes[j].classList.contains("viz-later"));
const again=steps(root,uses.length,uses.length,draw);
nodes.forEach((n,i)=>n.onclick=()=>at===i?again():pick(i));
pane.onkeydown=e=>{const arrow=e.key.startsWith("Arrow");if(!arrow&&e.key!=="Escape")return;
e.preventDefault();e.stopPropagation();if(e.key==="Escape")return again();
let to;if(at<0)to=kids(-1)[0];else{const p=+nodes[at].dataset.parent,row=kids(p),k=row.indexOf(at);to={ArrowRight:kids(at)[0],ArrowLeft:p<0?undefined:p,ArrowDown:row[k+1],ArrowUp:row[k-1]}[e.key]}
if(to!==undefined)pick(to)}}
