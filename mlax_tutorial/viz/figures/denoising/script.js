function begin(root,data){
const image=root.querySelector("img"),cells=[...root.querySelectorAll(".viz-denoising-error")];
steps(root,data.levels.length-1,data.start,now=>{
image.src="data:image/png;base64,"+data.images[now];
data.errors[now].forEach((text,i)=>{cells[i].textContent=text});
const said=data.names.map((name,i)=>`${name} ${data.errors[now][i]}`).join(", ");
image.alt=`At sigma = ${data.levels[now]}, the errors are: ${said}.`;
return `sigma = ${data.levels[now]}; errors: ${said}`})}
