function begin(root,{inputs}){
const rows=[...root.querySelectorAll("tbody tr")].slice(inputs),end=root.querySelector(".viz-batch-end");
steps(root,rows.length,0,now=>{
mark(rows,now);end.classList.toggle("viz-later",now<rows.length);
const row=now?rows[now-1]:null,count=row?row.querySelectorAll("td:last-child code").length:0;
return row?`Equation ${now} of ${rows.length}: `+(row.classList.contains("viz-batch-shared")?"no input is mapped, so it is done once for all examples.":count===1?"it stays one equation, with an axis more.":count?`it becomes ${count} equations.`:"there is nothing to do."):"The inputs, for one example and for the batch. Press ▶, and watch where the framed axis goes."})}
