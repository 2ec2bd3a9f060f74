// a window without padding whose weights are all equal: the shape of its output, and its values, the means of what it sees
function slide(x,[rows,columns],flat,size,stride,dilation){
const fit=n=>Math.max(0,Math.floor((n-dilation*(size-1)-1)/stride)+1),tall=flat?1:fit(rows),wide=fit(columns),down=flat?1:size,values=[];
for(let row=0;row<tall;row++)for(let column=0;column<wide;column++){
let sum=0;for(let i=0;i<down;i++)for(let j=0;j<size;j++)sum+=x[(row*stride+i*dilation)*columns+column*stride+j*dilation];
values.push(sum/(down*size))}
return {shape:[tall,wide],values}}
function begin(root,data){
const unit=10,two=s=>s.length===2?s:[1,s[0]],shapes=data.shapes.map(two),last=shapes.length-1,flat=data.shapes[0].length===1;
const svgs=[...root.querySelectorAll(".viz-convolution-grid svg")],groups=svgs.map(svg=>svg.querySelector("g")),range=root.querySelector(".viz-range");
const spread=runs=>{const all=[];for(let i=0;i<runs.length;i+=3)for(let k=runs[i];k<=runs[i+1];k+=runs[i+2])all.push(k);return all};
let maps=data.maps.map(axes=>axes.map(axis=>axis.map(spread))),values=null;
function back(stage,ways){
const found=new Map(),wide=shapes[stage][1],after=shapes[stage+1][1],[down,across]=maps[stage];
const add=(place,count)=>found.set(place,(found.get(place)||0)+count);
for(const [place,count] of ways){
if(!across)for(const i of down[place])add(i,count);
else for(const i of down[Math.floor(place/after)])for(const j of across[place%after])add(i*wide+j,count)}
return found}
function cells(stage,all){const wide=shapes[stage][1],tall=+svgs[stage].dataset.tall;
return all.map(([place,opacity])=>`<rect x="${place%wide*unit}" y="${Math.floor(place/wide)*tall}" width="${unit}" height="${tall}" opacity="${opacity.toFixed(2)}"/>`).join("")}
function draw(stage,ways){const most=Math.max(...ways.values(),0)||1;groups[stage].innerHTML=cells(stage,[...ways].map(([place,count])=>[place,.25+.75*count/most]))}
function seen(output){let ways=new Map([[output,1]]);const all=[ways];for(let stage=last-1;stage>=0;stage--)all.unshift(ways=back(stage,ways));return all}
const span=(name,numbers)=>{const low=Math.min(...numbers),high=Math.max(...numbers);return low===high?`${name} ${low}`:`${name}s ${low} to ${high}`};
function go(start){
const [rows,columns]=shapes[last];
if(!(rows*columns)){range.max=0;steps(root,0,0,()=>{svgs.forEach((_,stage)=>draw(stage,new Map()));return "The window is larger than the input: there is no output"});return}
const middle=seen(Math.floor(rows/2)*columns+Math.floor(columns/2))[0].size;range.max=rows*columns-1;
steps(root,rows*columns-1,start,now=>{
const all=seen(now);all.forEach((ways,stage)=>draw(stage,ways));
const places=[...all[0].keys()],wide=shapes[0][1],where=flat?`place ${now}`:`row ${Math.floor(now/columns)}, column ${now%columns}`;
if(!places.length)return `The output at ${where} sees no input at all`;
const what=flat?span("place",places):`${span("row",places.map(p=>Math.floor(p/wide)))} and ${span("column",places.map(p=>p%wide))}`;
return `The output at ${where} sees ${what}: ${places.length} of ${shapes[0][0]*wide} inputs`+(places.length<middle?`, ${middle} from the middle`:"")+(values?`. Their mean is ${+values[now].toPrecision(3)}`:"")})}
go(+range.value);
svgs[last].onclick=event=>{const [rows,columns]=shapes[last],box=svgs[last].getBoundingClientRect(),at=(value,size,count)=>Math.max(0,Math.min(count-1,Math.floor(value/size*count)));
range.value=at(event.clientY-box.top,box.height,rows)*columns+at(event.clientX-box.left,box.width,columns);range.oninput()};
if(data.tune)move()
function move(){
const low=Math.min(...data.tune),high=Math.max(...data.tune),svg=svgs[1],shown=svgs.map(svg=>{const group=document.createElementNS(svg.namespaceURI,"g");group.setAttribute("class","viz-convolution-values");svg.prepend(group);return group});
const gray=(stage,all)=>{shown[stage].innerHTML=cells(stage,all.map((value,place)=>[place,high>low?.6*(value-low)/(high-low):0]))};
const title=root.querySelector(".viz-convolution-grid:last-child p"),line=root.querySelectorAll("tbody tr > *"),pixels=parseFloat(svgs[0].style.width)/shapes[0][1];
function set(size,stride,dilation){
const [before]=[shapes[1]],now=+range.value,found=slide(data.tune,shapes[0],flat,size,stride,dilation),[rows,columns]=shapes[1]=found.shape,tall=+svg.dataset.tall;
values=found.values;
const axis=count=>Array.from({length:count},(_,i)=>Array.from({length:size},(_,j)=>i*stride+j*dilation));
maps=[flat?[axis(columns)]:[axis(rows),axis(columns)]];
svg.setAttribute("viewBox",`-1 -1 ${columns*unit+2} ${rows*tall+2}`);svg.style.width=`${Math.max(36,Math.round(pixels*columns))}px`;svg.style.display=rows*columns?"":"none";
let lines="";for(let i=0;i<=columns;i++)lines+=`M${i*unit} 0V${rows*tall}`;for(let i=0;i<=rows;i++)lines+=`M0 ${i*tall}H${columns*unit}`;
svg.querySelector("path").setAttribute("d",lines);gray(1,values);
const by=(down,across)=>flat?`${across}`:`${down} x ${across}`,wide=dilation*(size-1)+1;
title.innerHTML=`kernel ${by(size,size)}, stride ${stride}, dilation ${dilation}<br>output ${by(rows,columns)}`;
line[0].textContent="yours";line[1].textContent=line[2].textContent=by(wide,wide);
const scaled=(at,from,to)=>Math.min(to-1,Math.floor((at+.5)*to/from)),old=before[0]*before[1]?now:0;
go(scaled(Math.floor(old/(before[1]||1)),before[0]||1,rows)*columns+scaled(old%(before[1]||1),before[1]||1,columns))}
gray(0,data.tune);tuned(root,[String,String,String],set);
set(...[...root.querySelectorAll(".viz-tune input")].map(input=>+input.value))}}
