function begin(root,data){
const links=[...root.querySelectorAll(".viz-exchange-link")],rows=[...root.querySelectorAll("tbody tr")];
steps(root,rows.length,0,now=>{
rows.forEach((row,i)=>row.classList.toggle("viz-now",i===now-1));root.querySelector("svg").classList.toggle("viz-exchange-now",now>0);
links.forEach((link,i)=>{const width=data.widths[now][i];link.classList.toggle("viz-exchange-off",!width);if(width)link.firstChild.setAttribute("stroke-width",width)});
return data.said[now]})}
