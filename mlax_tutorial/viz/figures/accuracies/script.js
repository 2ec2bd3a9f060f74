function begin(root,data){
const one=s=>root.querySelector(".viz-"+s),images=one("accuracies-images"),seeds=one("accuracies-seeds"),same=one("accuracies-same"),[a,b]=data.means;
const clouds=[0,1,2].map(i=>[...root.querySelectorAll(".viz-accuracies-"+i+" circle")]);
function below(x){const t=1/(1+.3275911*Math.abs(x)/Math.SQRT2),tail=t*(.254829592+t*(-.284496736+t*(1.421413741+t*(-1.453152027+t*1.061405429))))*Math.exp(-x*x/2)/2;return x<0?tail:1-tail}
function percent(p){return (p>=.99&&p<.9995||p>.0005&&p<=.01?(100*p).toFixed(1):Math.round(100*p))+" %"}
function draw(){
const n=data.images[images.value],k=data.seeds[seeds.value],said=[n.toLocaleString("en-US"),""+k];
[images,seeds].forEach((range,i)=>{range.setAttribute("aria-valuetext",said[i]);range.parentNode.querySelector("output").textContent=said[i]});
const spreads=data.parts.map(([seed,image,both])=>Math.sqrt(seed/k+image/n+both/k/n)),shared=same&&same.checked?2*data.covariance/n:0;
spreads.push(Math.sqrt(Math.max(spreads[0]**2+spreads[1]**2-shared,0)));
[[a,data.center],[b,data.center],[b-a,0]].forEach(([middle,origin],row)=>clouds[row].forEach((dot,i)=>{const value=middle+spreads[row]*data.z[i];
dot.setAttribute("cx",Math.min(Math.max(data.wide/2+(value-origin)*data.scale,data.edge/2),data.wide-data.edge/2).toFixed(1));
if(row===2)dot.classList.toggle("viz-accuracies-behind",value<0)}));
const ahead=spreads[2]?below((b-a)/spreads[2]):(1+Math.sign(b-a))/2;
one("status").textContent=`${said[0]} images, ${k} seed${k===1?"":"s"}: ${data.names[1]} comes out ahead in ${percent(ahead)} of such tests, by ${(100*(b-a)).toFixed(1)} ± ${(196*spreads[2]).toFixed(1)} points.`}
[images,seeds].forEach(range=>range.oninput=draw);if(same)same.onchange=draw;
one("bar").hidden=false;root.tabIndex=-1;draw()}
