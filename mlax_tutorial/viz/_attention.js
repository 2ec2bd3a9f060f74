function begin(root,data){
const heads=[...root.querySelectorAll(".viz-attention-heads button")],map=root.querySelector(".viz-attention-map"),row=root.querySelector(".viz-attention-row");
const query=root.querySelector(".viz-attention-query b"),chips=[...root.querySelectorAll(".viz-attention-keys li")],last=data.queries.length-1;
const brief=text=>text.length<=12?text:text.slice(0,11)+"…";let head=0;
const again=steps(root,last,Math.floor((last+1)/2),now=>{
const shares=data.percent[head][now];
row.setAttribute("y",+row.dataset.top+now*row.dataset.size);query.textContent=brief(data.queries[now]);
chips.forEach((chip,i)=>{chip.style.setProperty("--w",Math.max(0,shares[i])/100);chip.querySelector("i").textContent=shares[i]>=1?shares[i]:""});
const most=shares.map((share,i)=>[share,i]).filter(([share])=>share>=1).sort((a,b)=>b[0]-a[0]||a[1]-b[1]).slice(0,3).map(([share,i])=>`${data.keys[i]} ${share} %`);
return `${data.heads[head][0].toUpperCase()+data.heads[head].slice(1)}. Query ${now} of ${last}, ${data.queries[now]}: ${shares.includes(-1)?"not finite":most.join(", ")||"looks at nothing"}`});
heads.forEach((button,i)=>{button.onclick=()=>{head=i;heads.forEach((other,j)=>other.setAttribute("aria-pressed",i===j));map.innerHTML=button.querySelector("g").innerHTML;again()}})}
