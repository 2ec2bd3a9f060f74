function begin(root,data){
const unit=10,two=s=>s.length===2?s:[1,s[0]],shapes=data.shapes.map(two),last=shapes.length-1,[rows,columns]=shapes[last],flat=data.shapes[0].length===1;
const svgs=[...root.querySelectorAll(".viz-convolution-grid svg")],groups=svgs.map(svg=>svg.querySelector("g"));
const spread=runs=>{const all=[];for(let i=0;i<runs.length;i+=3)for(let k=runs[i];k<=runs[i+1];k+=runs[i+2])all.push(k);return all};
const maps=data.maps.map(axes=>axes.map(axis=>axis.map(spread)));
function back(stage,ways){
const found=new Map(),wide=shapes[stage][1],after=shapes[stage+1][1],[down,across]=maps[stage];
const add=(place,count)=>found.set(place,(found.get(place)||0)+count);
for(const [place,count] of ways){
if(!across)for(const i of down[place])add(i,count);
else for(const i of down[Math.floor(place/after)])for(const j of across[place%after])add(i*wide+j,count)}
return found}
function draw(stage,ways){
const wide=shapes[stage][1],tall=+svgs[stage].dataset.tall,most=Math.max(...ways.values(),0)||1;
groups[stage].innerHTML=[...ways].map(([place,count])=>`<rect x="${place%wide*unit}" y="${Math.floor(place/wide)*tall}" width="${unit}" height="${tall}" opacity="${(.25+.75*count/most).toFixed(2)}"/>`).join("")}
function seen(output){let ways=new Map([[output,1]]);const all=[ways];for(let stage=last-1;stage>=0;stage--)all.unshift(ways=back(stage,ways));return all}
const span=(name,numbers)=>{const low=Math.min(...numbers),high=Math.max(...numbers);return low===high?`${name} ${low}`:`${name}s ${low} to ${high}`};
const middle=seen(Math.floor(rows/2)*columns+Math.floor(columns/2))[0].size;
const again=steps(root,rows*columns-1,+root.querySelector(".viz-range").value,now=>{
const all=seen(now);all.forEach((ways,stage)=>draw(stage,ways));
const places=[...all[0].keys()],wide=shapes[0][1],where=flat?`place ${now}`:`row ${Math.floor(now/columns)}, column ${now%columns}`;
if(!places.length)return `The output at ${where} sees no input at all`;
const what=flat?span("place",places):`${span("row",places.map(p=>Math.floor(p/wide)))} and ${span("column",places.map(p=>p%wide))}`;
return `The output at ${where} sees ${what}: ${places.length} of ${shapes[0][0]*wide} inputs`+(places.length<middle?`, ${middle} from the middle`:"")});
svgs[last].onclick=event=>{const box=svgs[last].getBoundingClientRect(),at=(value,size,count)=>Math.max(0,Math.min(count-1,Math.floor(value/size*count)));
const range=root.querySelector(".viz-range");range.value=at(event.clientY-box.top,box.height,rows)*columns+at(event.clientX-box.left,box.width,columns);range.oninput()}}
