function begin(root,data){
const one=s=>root.querySelector(".viz-gates-"+s),marker=one("marker"),veil=one("veil"),labels=[...root.querySelectorAll(".viz-gates-label")],rows=[...root.querySelectorAll("tbody tr")],last=labels.length-1;
steps(root,last,last,now=>{
const x=data.left+now*data.across,end=data.left+labels.length*data.across;
marker.setAttribute("x",x);veil.setAttribute("x",x+data.across);veil.setAttribute("width",Math.max(0,end-x-data.across+1));
labels.forEach((label,i)=>label.setAttribute("class","viz-gates-label viz-gates-"+(data.shades[now][i]||0)));
data.table[now].forEach((three,i)=>[...rows[i].querySelectorAll("td")].forEach((cell,j)=>{cell.textContent=three[j]}));
return `Step ${now+1} of ${last+1}: ${data.labels[now].trim()||"blank"}`})}
