function begin(root,data){
const one=s=>root.querySelector(".viz-"+s),lists=[...root.querySelectorAll(".viz-placement-axis")],chips=[...root.querySelectorAll(".viz-placement-name")],svg=root.querySelector("svg"),spec=data.spec.map(names=>[...names]);
const size=name=>data.sizes[data.names.indexOf(name)],product=numbers=>numbers.reduce((a,b)=>a*b,1);
const amount=n=>{if(n<1000)return n+" B";for(const unit of ["kB","MB","GB","TB","PB"]){n/=1000;if(n<999.5||unit==="PB")return +n.toPrecision(3)+" "+unit}};
const numbers=(devices,wide)=>devices.length<=Math.max(Math.floor(wide/24),1)?devices.join(", "):wide>40?devices[0]+"…"+devices.at(-1):"…";
function element(name,attributes,text){const made=document.createElementNS("http://www.w3.org/2000/svg",name);for(const key in attributes)made.setAttribute(key,attributes[key]);if(text)made.textContent=text;return made}
function held(parts){
const found=new Map();
data.devices.forEach((device,number)=>{
const place={};let rest=number;
[...data.names].reverse().forEach(name=>{place[name]=rest%size(name);rest=Math.floor(rest/size(name))});
const part=spec.map(names=>names.reduce((index,name)=>index*size(name)+place[name],0)),at=(part.length===1?[0,part[0]]:[...part,0,0].slice(0,2)).join();
found.set(at,[...found.get(at)||[],device])});
return found}
function draw(){
const parts=spec.map(names=>product(names.map(size))),used=spec.flat(),twice=used.find((name,i)=>used.indexOf(name)<i),uneven=data.shape.findIndex((length,i)=>length%parts[i]);
const written="P("+spec.map(names=>names.length>1?"("+names.map(name=>`'${name}'`).join(", ")+")":names.length?`'${names[0]}'`:"None").join(", ")+")";
if(twice){one("status").textContent=`${written} is an error: ${twice} divides two axes.`;svg.classList.add("viz-placement-off");return}
if(uneven>=0){one("status").textContent=`${written} is an error: ${data.shape[uneven]} cannot be divided evenly into ${parts[uneven]} parts.`;svg.classList.add("viz-placement-off");return}
svg.classList.remove("viz-placement-off");
const shard=data.shape.map((length,i)=>length/parts[i]),bytes=data.itemsize*product(shard),copies=data.devices.length/product(parts);
one("status").textContent=`${written}: each device holds ${shard.join(" × ")||"one number"}, ${amount(bytes)}; `+(copies>1?`each part is on ${copies} devices.`:"each part is on one device.");
const [down,across]=parts.length===1?[1,parts[0]]:[...parts,1,1].slice(0,2),w=data.room[0]/across,h=data.room[1]/down;
const there=held(parts),pieces=[];
for(let i=0;i<down;i++)for(let j=0;j<across;j++){const devices=there.get(i+","+j).sort((a,b)=>a-b);
pieces.push(element("rect",{class:"viz-placement-"+(i*across+j)%8,x:w*j+1.5,y:h*i+1.5,width:w-3,height:h-3}),element("text",{x:w*j+w/2,y:h*i+h/2+5,"text-anchor":"middle"},numbers(devices,w)))}
svg.replaceChildren(...pieces)}
lists.forEach(list=>list.onchange=()=>{spec[+list.dataset.axis]=list.value?list.value.split(","):[];draw()});
function move(name,axis){
const moved=spec.map((names,i)=>names.filter(each=>each!==name).concat(i===axis?[name]:[])),values=moved.map(names=>names.join());
if(lists.some((list,i)=>![...list.options].some(option=>option.value===values[i])))return;
lists.forEach((list,i)=>list.value=values[i]);spec.splice(0,spec.length,...moved);draw()}
chips.forEach(chip=>{
let from=null;
const under=event=>lists.findIndex(list=>{const box=list.parentElement.getBoundingClientRect();
return event.clientX>=box.left&&event.clientX<=box.right&&event.clientY>=box.top&&event.clientY<=box.bottom});
const mark=axis=>lists.forEach((list,i)=>list.parentElement.classList.toggle("viz-placement-under",i===axis));
const end=()=>{from=null;chip.style.transform="";mark(-1)};
chip.onpointerdown=event=>{from=[event.clientX,event.clientY];chip.setPointerCapture(event.pointerId);event.preventDefault()};
chip.onpointermove=event=>{if(from){chip.style.transform=`translate(${event.clientX-from[0]}px,${event.clientY-from[1]}px)`;mark(under(event))}};
chip.onpointerup=event=>{if(from){const axis=under(event);end();move(chip.dataset.name,axis)}};
chip.onpointercancel=end});
one("bar").hidden=false;root.tabIndex=-1;draw()}
