(()=>{
function mark(items,now){items.forEach((item,i)=>{const on=i===now-1;item.classList.toggle("viz-later",i>=now);item.classList.toggle("viz-now",on);on?item.setAttribute("aria-current","step"):item.removeAttribute("aria-current")})}
function steps(root,count,start,draw){
const one=s=>root.querySelector(".viz-"+s),range=one("range"),back=one("previous"),next=one("next");let now;
function show(step,first){
now=Math.max(0,Math.min(count,step));const focused=document.activeElement;
const text=draw(now,first);if(text)one("status").textContent=text;
const on=root.querySelector(".viz-now");if(on&&!first){const r=root.getBoundingClientRect(),o=on.getBoundingClientRect(),top=r.top+one("bar").offsetHeight;if(o.top<top)root.scrollTop-=top-o.top+8;else if(o.bottom>r.bottom)root.scrollTop+=Math.min(o.bottom-r.bottom+8,o.top-top-8)}
range.value=now;back.disabled=now===0;next.disabled=now===count;
if(focused===back&&back.disabled)next.focus();if(focused===next&&next.disabled)back.focus()}
next.onclick=()=>show(now+1);back.onclick=()=>show(now-1);range.oninput=()=>show(+range.value);
root.onkeydown=e=>{const to={ArrowRight:now+1,ArrowLeft:now-1,Home:0,End:count}[e.key];if(to===undefined||e.target===range)return;e.preventDefault();e.stopPropagation();show(to)};
one("bar").hidden=false;root.tabIndex=-1;show(start,true);
return ()=>show(now)}
BEGIN
for(const root of document.querySelectorAll(".NAME:not([data-ready])")){root.dataset.ready="1";begin(root,JSON.parse(root.dataset.figure||"null"))}})();
