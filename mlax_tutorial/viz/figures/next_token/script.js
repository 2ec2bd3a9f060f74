function begin(root,data){
const one=s=>root.querySelector(".viz-next-token-"+s),inputs=["temperature","k","p"].map(one),rows=[...root.querySelectorAll("tbody tr")],last=data.texts.length-1,all=data.tokens.length;
function sampled(row){
const [t,k,p]=[data.temperatures[inputs[0].value],data.sizes[inputs[1].value],data.kept[inputs[2].value]];
const order=row.map((_,i)=>i).sort((a,b)=>row[b]-row[a]||a-b),highest=row[order[0]],raised=order.map((i,rank)=>rank<k?Math.pow(row[i]/highest,1/t):0);
const total=raised.reduce((a,b)=>a+b,0);let before=0,sum=0,count=0;const out=new Array(all).fill(0);
order.forEach((i,rank)=>{const chance=raised[rank]/total;if(chance>0&&(before<p-1e-9||rank===0)){out[i]=chance;sum+=chance;count++}before+=chance});
return {out:out.map(x=>x/sum),count}}
function put(cell,x,outside){cell.querySelector("rect").setAttribute("width",Math.round(100*x));cell.querySelector("span").textContent=Math.round(100*x)+" %";cell.classList.toggle("viz-next-token-out",outside)}
const again=steps(root,last,last,now=>{
const said=[data.temperatures[inputs[0].value],data.sizes[inputs[1].value]===all?"all":data.sizes[inputs[1].value],data.kept[inputs[2].value]];
inputs.forEach((input,i)=>{input.setAttribute("aria-valuetext",said[i]);input.parentNode.querySelector("output").textContent=said[i]});
const found=data.tables.map(table=>sampled(table[now])),plain=data.tables.map(table=>table[now]);
const sums=data.tokens.map((_,i)=>plain.reduce((a,row)=>a+row[i],0)),order=sums.map((_,i)=>i).sort((a,b)=>sums[b]-sums[a]||a-b).slice(0,rows.length-1);
rows.forEach((row,r)=>{const cells=row.querySelectorAll("td"),rest=r===rows.length-1;
if(!rest){row.hidden=r>=order.length;if(row.hidden)return;row.querySelector("th").textContent=data.tokens[order[r]]}
found.forEach((each,m)=>{const x=rest?Math.max(0,1-order.reduce((a,i)=>a+each.out[i],0)):each.out[order[r]];put(cells[m],x,x===0)})});
return `${now+1} of ${last+1}, after ${data.texts[now]}: ${found.map((each,m)=>`${data.names[m]} draws from ${each.count} token${each.count===1?"":"s"}`).join(", ")}`});
inputs.forEach(input=>{input.oninput=again;input.onkeydown=e=>e.stopPropagation()});
one("sliders").hidden=false}
