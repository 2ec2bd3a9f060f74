(()=>{for(const root of document.querySelectorAll(".NAME:not([data-ready])")){
root.dataset.ready="1";
const one=s=>root.querySelector(".viz-batching-"+s),rows=[...root.querySelectorAll("tbody tr")],entries=[...root.querySelectorAll(".viz-cache-entries li")],range=root.querySelector("input");
let now=0;
function show(step){
now=Math.max(0,Math.min(rows.length,step));
rows.forEach((r,i)=>{const on=i===now-1;r.classList.toggle("viz-batching-later",i>=now);r.classList.toggle("viz-batching-now",on);on?r.setAttribute("aria-current","step"):r.removeAttribute("aria-current")});
const used=rows.slice(0,now).map(r=>+r.dataset.program),at=now?+rows[now-1].dataset.program:-1;
entries.forEach((e,i)=>{const n=used.filter(p=>p===i).length;e.classList.toggle("viz-batching-later",+e.dataset.made>=now);e.classList.toggle("viz-cache-at",i===at);e.querySelector(".viz-cache-uses").textContent=n+(n===1?" call":" calls")});
const had=document.activeElement,back=one("previous"),on=one("next");range.value=now;back.disabled=now===0;on.disabled=now===rows.length;if(had===back&&back.disabled)on.focus();if(had===on&&on.disabled)back.focus();
one("status").textContent=now?`Call ${now} of ${rows.length}. ${rows[now-1].dataset.said}`:"Before the first call the cache is empty."}
one("next").onclick=()=>show(now+1);one("previous").onclick=()=>show(now-1);range.oninput=()=>show(+range.value);
root.onkeydown=e=>{const go={ArrowRight:now+1,ArrowLeft:now-1,Home:0,End:rows.length}[e.key];if(go===undefined||e.target===range)return;e.preventDefault();e.stopPropagation();show(go)};
one("bar").hidden=false;show(rows.length?1:0)}})();
