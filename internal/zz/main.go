package main
import ("fmt";"os";"strconv";"time";"context";"errors"
"github.com/palimpsest-ai/palimpsest"
"github.com/palimpsest-ai/palimpsest/render"
"github.com/palimpsest-ai/palimpsest/transcript"
"github.com/palimpsest-ai/palimpsest/wire"
"github.com/palimpsest-ai/palimpsest/wire/anthropic"
"github.com/palimpsest-ai/palimpsest/wire/openai"
"github.com/palimpsest-ai/palimpsest/wire/gemini"
"github.com/palimpsest-ai/palimpsest/wire/text"
)
func main(){
 t0:=time.Now()
 f,err:=transcript.Open(os.Args[1],nil); if err!=nil {panic(err)}
 b,_:=strconv.Atoi(os.Args[2])
 c,_:=palimpsest.New(palimpsest.Config{})
 tr:=f.Transcripts[0]
 t1:=time.Now()
 api:=os.Args[3]; prof:=api; if api=="text"{prof=""}
 res,err:=c.Compact(context.Background(),palimpsest.Request{Thread:tr.Thread,Budget:b,Profile:render.For(prof)})
 if err!=nil {fmt.Fprintln(os.Stderr,err); var be *palimpsest.BudgetError; if errors.As(err,&be){s:=fmt.Sprint(be.Err); if len(s)>1500{s=s[:1500]}; fmt.Fprintln(os.Stderr,s)};os.Exit(3)}
 t2:=time.Now()
 codecs:=map[string]wire.Codec{"anthropic":anthropic.Codec{},"openai":openai.Chat{},"responses":openai.Responses{},"gemini":gemini.Codec{}}
 var out []byte
 if api=="text"{out=text.Encode(res.Prompt)}else{ out,err=codecs[api].Encode(res.Prompt); if err!=nil{panic(err)}
  for _,p:=range codecs[api].Validate(out){fmt.Fprintln(os.Stderr,"PROBLEM",p.Advice,p)}}
 fmt.Fprintf(os.Stderr,"%d msgs %d -> %d/%d (fixed %d) ext %d sum %d clr %d drop %d; import %v compact %v; %d repairs\n",tr.Thread.Len(),res.Before,res.After,b,res.Fixed,len(res.Plan.Externalizations),len(res.Plan.Summarizations),len(res.Plan.Clearings),len(res.Plan.Drops),t1.Sub(t0),t2.Sub(t1),len(res.Manifest.Repairs))
 os.Stdout.Write(out)
}
