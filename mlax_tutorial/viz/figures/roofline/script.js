function begin(root,data){
const dots=[...root.querySelectorAll(".viz-roofline-dot")],rows=[...root.querySelectorAll("tbody tr")];
steps(root,rows.length,0,now=>{
rows.forEach((row,i)=>row.classList.toggle("viz-now",i===now-1));dots.forEach((dot,i)=>{dot.classList.toggle("viz-now",i===now-1);dot.setAttribute("r",i===now-1?9:6)});
return data.said[now]})}
