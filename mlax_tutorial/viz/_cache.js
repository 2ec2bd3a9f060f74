function begin(root){
const rows=[...root.querySelectorAll("tbody tr")],entries=[...root.querySelectorAll(".viz-cache-entries li")];
steps(root,rows.length,rows.length?1:0,(now,first)=>{
mark(rows,now);
const used=rows.slice(0,now).map(r=>+r.dataset.program),at=now?+rows[now-1].dataset.program:-1;
entries.forEach((e,i)=>{const n=used.filter(p=>p===i).length;e.classList.toggle("viz-later",+e.dataset.made>=now);e.classList.toggle("viz-cache-at",i===at);e.querySelector(".viz-cache-uses").textContent=n+(n===1?" call":" calls")});
return now?`Call ${now} of ${rows.length}. ${rows[now-1].dataset.said}${first&&rows.length>1?" Press ▶, and watch for the next filled dot.":""}`:"Before the first call the cache is empty."})}
