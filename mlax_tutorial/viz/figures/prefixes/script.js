function begin(root,data){
const markers=[...root.querySelectorAll(".viz-prefixes-marker")],rows=[...root.querySelectorAll("tbody tr")],last=data.texts.length-1;
steps(root,last,last,now=>{
markers.forEach(marker=>marker.setAttribute("x",data.left+now*data.across));
const said=data.tables.map((table,k)=>{let best=0;
table[now].forEach((value,i)=>{if(value>table[now][best])best=i;const cell=rows[i].querySelectorAll("td")[k];
cell.querySelector("rect").setAttribute("width",Math.round(100*value));cell.querySelector("span").textContent=Math.round(100*value)+" %"});
return `${data.names[k]} ${data.classes[best]} ${Math.round(100*table[now][best])} %`});
return `${now+1} of ${last+1}, ${data.texts[now]}: ${said.join(", ")}`})}
