function begin(root,data){
const arrays=[...root.querySelectorAll(".viz-gridsteps-arrays svg")].map(svg=>[...svg.querySelectorAll("rect")]);
steps(root,data.seen.length,0,now=>{
arrays.forEach((blocks,i)=>{const place=now?data.seen[now-1][i]:-1,copied=now&&data.copied[now-1][i];
blocks.forEach((block,j)=>{block.classList.toggle("viz-gridsteps-held",j===place&&!copied);block.classList.toggle("viz-gridsteps-new",j===place&&!!copied)})});
return data.said[now]})}
