// the reader's sliders and choices; their arrows are their own, not the figure's
function tuned(root,words,set){
const box=root.querySelector(".viz-tune"),controls=[...box.querySelectorAll("input,select")];
controls.forEach((control,i)=>{control.onkeydown=e=>e.stopPropagation();control.oninput=()=>{
if(words[i]){const text=words[i](+control.value);control.setAttribute("aria-valuetext",text);control.nextElementSibling.textContent=text}
set(...controls.map(each=>each.selectedIndex??+each.value))}});
box.hidden=false}
