(()=>{for(const root of document.querySelectorAll(".NAME:not([data-ready])")){
root.dataset.ready="1";
const one=s=>root.querySelector(".viz-passes-"+s),rows_of=s=>[...one(s).querySelectorAll("tr:not(.viz-passes-none)")];
const forward=rows_of("forward"),rows=[...forward,...rows_of("backward")],range=root.querySelector("input"),end=one("end"),waiting=one("waiting");
let now=0;
function show(step){
now=Math.max(0,Math.min(rows.length,step));
const row=now?rows[now-1]:null,from=row&&row.dataset.from?row.dataset.from.split(" ").map(Number):[];
rows.forEach((r,i)=>{const on=i===now-1;r.classList.toggle("viz-passes-later",i>=now);r.classList.toggle("viz-passes-now",on);r.classList.toggle("viz-passes-source",from.includes(i));on?r.setAttribute("aria-current","step"):r.removeAttribute("aria-current")});
end.classList.toggle("viz-passes-later",now<rows.length);waiting.classList.toggle("viz-passes-later",now<forward.length);
range.value=now;one("previous").disabled=now===0;one("next").disabled=now===rows.length;
const back=now>forward.length,at=back?now-forward.length:now,of=back?rows.length-forward.length:forward.length;
one("status").textContent=!row?"Before the first equation: only the arguments are there.":`${back?"Backward":"Forward"}, equation ${at} of ${of}: `+([row.children[1].textContent||"for the moment only",row.children[2].textContent+" held"].join("; "))+"."}
one("next").onclick=()=>show(now+1);one("previous").onclick=()=>show(now-1);range.oninput=()=>show(+range.value);
root.onkeydown=e=>{const go={ArrowRight:now+1,ArrowLeft:now-1,Home:0,End:rows.length}[e.key];if(go===undefined||e.target===range)return;e.preventDefault();e.stopPropagation();show(go)};
one("bar").hidden=false;show(0)}})();
