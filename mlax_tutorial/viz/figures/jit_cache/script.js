function begin(root,data){
const one=s=>root.querySelector(s),body=one("tbody"),list=one(".viz-jit-cache-entries");
function walk(at,invited){
const rows=[...body.rows],entries=[...list.children];
one(".viz-range").max=rows.length;
steps(root,rows.length,at,(now,first)=>{
mark(rows,now);
const used=rows.slice(0,now).map(r=>+r.dataset.program),at=now?+rows[now-1].dataset.program:-1;
entries.forEach((e,i)=>{const n=used.filter(p=>p===i).length;e.classList.toggle("viz-later",+e.dataset.made>=now);e.classList.toggle("viz-jit-cache-at",i===at);e.querySelector(".viz-jit-cache-uses").textContent=n+(n===1?" call":" calls")});
return now?`Call ${now} of ${rows.length}. ${rows[now-1].dataset.said}${first&&invited&&rows.length>1?" Press ▶, and watch for the next filled dot.":""}`:"Before the first call the cache is empty."})}
walk(body.rows.length?1:0,true);
if(data)choose(root,data,walk)}
// as jit looks a call up: found if shape, dtype and weak type are those of a call that is otherwise the same
function lookUp(name,part,calls){
const same=(a,b)=>a.shape===b.shape&&a.dtype===b.dtype&&a.weak===b.weak;
const found=calls.find(call=>!call.rest.length&&same(part,call.part));
if(found)return {program:found.program,why:[]};
const whys=[...calls].reverse().map(({part:old,rest})=>{
if(!old||same(part,old))return rest;
const other=["shape","dtype"].filter(key=>part[key]!==old[key]).map(key=>"another "+key);
return [`${name}: ${old.text} → ${part.text}, ${other.join(" and ")||"one of them is weakly typed"}`,...rest]});
const extent=why=>100*why.length+why.filter(text=>text.includes(" and another ")).length;
return {program:-1,why:whys.reduce((a,b)=>extent(b)<extent(a)?b:a)}}
function choose(root,data,walk){
const one=s=>root.querySelector(s),box=one(".viz-tune"),body=one("tbody"),list=one(".viz-jit-cache-entries"),title=one(".viz-jit-cache-title").lastChild;
const [kind,shape]=box.querySelectorAll("select"),dots=[...root.querySelectorAll(".viz-jit-cache-legend > span")];
const before={body:body.innerHTML,list:list.innerHTML,heads:one("thead tr").innerHTML,title:title.textContent};let calls=[...data.calls];
const make=(tag,name,text="")=>{const made=document.createElement(tag);made.className=name;made.textContent=text;return made};
function dot(cell,which,words){cell.append(dots[which].cloneNode(true),make("span","viz-unseen",words))}
function options(){const shapes=data.further.filter(one=>one.kind===kind.value).map(one=>one.shape);for(const option of shape.options)option.disabled=!shapes.includes(option.value);if(shape.selectedOptions[0].disabled)shape.value=shapes[0]}
function call(){
const next=data.further.find(one=>one.kind===kind.value&&one.shape===shape.value),{program,why}=lookUp(data.name,next.part,calls);
const count=list.children.length,number=body.rows.length,found=program>=0,made=!found&&!next.error;
const row=document.createElement("tr"),head=make("th","",number+1),words=make("td","");
head.scope="row";words.append(make("code","",next.key)," ",make("span","viz-jit-cache-why",found?"from the cache":made?"traced: "+why.join("; "):next.error));
row.dataset.program=found?program:made?count:-1;
row.dataset.said=found?"Taken from the cache.":made?`Traced and compiled: ${why.join("; ")}.`:"It raised "+next.error;
row.append(head,words);
for(let i=0;i<count;i++){const cell=make("td","viz-jit-cache-cell viz-jit-cache-there");if(i===program)dot(cell,1,`found: program ${i+1}`);row.append(cell)}
if(made){
const top=make("th","viz-jit-cache-cell",count+1);top.scope="col";one("thead tr").append(top);
for(const old of body.rows)old.append(make("td","viz-jit-cache-cell"));
const cell=make("td","viz-jit-cache-cell viz-jit-cache-born");dot(cell,0,`traced: program ${count+1}`);row.append(cell);
const entry=make("li","");entry.dataset.made=number;entry.append(make("b","",`program ${count+1}`)," ",make("code","",next.key),`, ${next.equations} equation${next.equations===1?"":"s"}, `,make("span","viz-jit-cache-uses","1 call"));list.append(entry)}
if(found||made)calls.push({program:+row.dataset.program,rest:[],part:next.part});
body.append(row);tell();walk(number+1)}
function tell(){const calls=body.rows.length,programs=list.children.length;title.textContent=`: ${calls} call${calls===1?"":"s"}, ${programs} program${programs===1?"":"s"}`}
one(".viz-jit-cache-call").onclick=call;
one(".viz-jit-cache-anew").onclick=()=>{body.innerHTML=before.body;list.innerHTML=before.list;one("thead tr").innerHTML=before.heads;title.textContent=before.title;calls=[...data.calls];walk(body.rows.length)};
tuned(root,[],options);options()}
