function begin(root,data){
const all=s=>[...root.querySelectorAll(s)],switches=all(".viz-blocks-switch"),branches=all(".viz-blocks-branch"),alone=all(".viz-blocks-alone tbody tr"),shares=all(".viz-blocks-classes .viz-blocks-share"),head=root.querySelector(".viz-blocks-head");
const total=row=>row.reduce((a,b)=>a+b,0),said=share=>(100*share).toFixed(1)+" %",size=total(data.sizes),whole=total(data.right[0])/size;let mask=0,chosen=false;
const again=steps(root,switches.length,0,now=>{
if(!chosen)mask=now?1<<now-1:0;chosen=false;
const off=switches.map((_,i)=>i).filter(i=>mask>>i&1),right=data.right[mask],share=total(right)/size;
switches.forEach((button,i)=>{const on=!(mask>>i&1);button.setAttribute("aria-pressed",on);branches[i].classList.toggle("viz-blocks-off",!on)});
alone.forEach((row,i)=>row.classList.toggle("viz-now",off.length<2&&i===(off.length?off[0]+1:0)));
shares.forEach((cell,i)=>{const part=right[i]/Math.max(data.sizes[i],1);cell.querySelector("b").style.width=100*part+"%";cell.querySelector("span").textContent=said(part)});
const names=off.map(i=>i+1),text=names.length===1?"block "+names[0]:"blocks "+names.slice(0,-1).join(", ")+" and "+names.at(-1);
head.textContent=off.length?"right, without "+text:"right, all blocks";
return off.length?`Without ${text}: ${said(share)} right; with all blocks ${said(whole)}.`:`With all blocks ${said(whole)} are right.`});
switches.forEach((button,i)=>{button.onclick=()=>{mask^=1<<i;chosen=true;again()}})}
