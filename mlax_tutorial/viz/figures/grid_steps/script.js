function begin(root,data){
const arrays=[...root.querySelectorAll(".viz-grid-steps-arrays svg")].map(svg=>[...svg.querySelectorAll("rect")]);
steps(root,data.seen.length,0,now=>{
arrays.forEach((blocks,i)=>{const place=now?data.seen[now-1][i]:-1,copied=now&&data.copied[now-1][i];
blocks.forEach((block,j)=>{block.classList.toggle("viz-grid-steps-held",j===place&&!copied);block.classList.toggle("viz-grid-steps-new",j===place&&!!copied)})});
return data.said[now]})}
