(()=>{for(const root of document.querySelectorAll(".NAME:not([data-ready])")){
root.dataset.ready="1";
const one=s=>root.querySelector(".viz-batching-"+s),given=+root.dataset.inputs;
const rows=[...root.querySelectorAll("tbody tr")].slice(given),range=root.querySelector("input"),end=one("end");
let now=0;
function show(step){
now=Math.max(0,Math.min(rows.length,step));
rows.forEach((r,i)=>{const on=i===now-1;r.classList.toggle("viz-batching-later",i>=now);r.classList.toggle("viz-batching-now",on);on?r.setAttribute("aria-current","step"):r.removeAttribute("aria-current")});
end.classList.toggle("viz-batching-later",now<rows.length);
range.value=now;one("previous").disabled=now===0;one("next").disabled=now===rows.length;
const row=now?rows[now-1]:null,count=row?row.querySelectorAll("td:last-child code").length:0;
one("status").textContent=!row?"The inputs, for one example and for the batch.":`Equation ${now} of ${rows.length}: `+(row.classList.contains("viz-batching-shared")?"no input is mapped, so it is done once for all examples.":count===1?"it stays one equation, with an axis more.":count?`it becomes ${count} equations.`:"there is nothing to do.")}
one("next").onclick=()=>show(now+1);one("previous").onclick=()=>show(now-1);range.oninput=()=>show(+range.value);
root.onkeydown=e=>{const go={ArrowRight:now+1,ArrowLeft:now-1,Home:0,End:rows.length}[e.key];if(go===undefined||e.target===range)return;e.preventDefault();e.stopPropagation();show(go)};
one("bar").hidden=false;show(0)}})();
