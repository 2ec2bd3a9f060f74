function begin(root,data){
const bars=root.querySelector(".viz-ranges-bars"),rows=[...root.querySelectorAll("tbody tr")];
steps(root,data.cells[0].length-1,0,now=>{
bars.setAttribute("transform",`translate(${now*data.unit} 0)`);
rows.forEach((row,i)=>data.cells[i][now].forEach((text,j)=>{row.cells[j+1].textContent=text}));
return now?`All numbers times 2 to the power of ${now}: ${(2**now).toLocaleString("en-US")}.`:"The numbers as they are."})}
