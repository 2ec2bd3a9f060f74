function begin(root){
const one=s=>root.querySelector(".viz-passes-"+s),rows_of=s=>[...one(s).querySelectorAll("tr:not(.viz-passes-none)")];
const forward=rows_of("forward"),rows=[...forward,...rows_of("backward")],end=one("end"),waiting=one("waiting");
steps(root,rows.length,0,now=>{
const row=now?rows[now-1]:null,from=row&&row.dataset.from?row.dataset.from.split(" ").map(Number):[];
mark(rows,now);rows.forEach((r,i)=>r.classList.toggle("viz-passes-source",from.includes(i)));
end.classList.toggle("viz-later",now<rows.length);waiting.classList.toggle("viz-later",now<forward.length);
if(!row)return "Before the first equation: only the arguments are there. Press ▶, and watch what is stored, and how long it waits.";
const back=now>forward.length,at=back?now-forward.length:now,of=back?rows.length-forward.length:forward.length;
return `${back?"Backward":"Forward"}, equation ${at} of ${of}: ${row.children[1].textContent||"for the moment only"}; ${row.children[2].textContent} held.`})}
