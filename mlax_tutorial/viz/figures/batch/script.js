function begin(root,{inputs}){
const one=s=>root.querySelector(s),body=one("tbody"),end=one(".viz-batch-end");
function walk(){
const rows=[...body.rows].slice(inputs);
one(".viz-range").max=rows.length;
steps(root,rows.length,0,now=>{
mark(rows,now);end.classList.toggle("viz-later",now<rows.length);
const row=now?rows[now-1]:null,count=row?row.querySelectorAll("td:last-child code").length:0;
return row?`Equation ${now} of ${rows.length}: `+(row.classList.contains("viz-batch-shared")?"no input is mapped, so it is done once for all examples.":count===1?"it stays one equation, with an axis more.":count?`it becomes ${count} equations.`:"there is nothing to do."):body.rows.length?"The inputs, for one example and for the batch. Press ▶, and watch where the framed axis goes.":"There is no batched program for these axes."})}
walk();
const box=one(".viz-tune");if(!box)return;
const lists=[...box.querySelectorAll("select")],states=[...root.querySelectorAll("template")],said=one(".viz-batch-said");
function choose(){
const axes=lists.map(list=>list.value).join(","),state=states.find(state=>state.dataset.axes===axes).content;
const [title,words,last]=state.querySelectorAll("p"),rows=state.querySelector("tbody").innerHTML;
one(".viz-batch-title").innerHTML=title.innerHTML||"These axes do not fit.";said.innerHTML=words.innerHTML;body.innerHTML=rows;end.innerHTML=last.innerHTML;
one("table").hidden=!rows;walk()}
tuned(root,[],choose);said.hidden=false}
