package main
import ("fmt";"os"
"github.com/palimpsest-ai/palimpsest/transcript"
"github.com/palimpsest-ai/palimpsest/token"
)
func main(){ f,err:=transcript.Open(os.Args[1],nil); if err!=nil{panic(err)}
c,_:=token.New("o200k",nil)
th:=f.Transcripts[0].Thread
n:=th.Len(); for i:=max(0,n-14);i<n;i++{ m:=th.At(i); s:=""; for _,p:=range m.Parts{ s+=fmt.Sprintf("%T ",p)}; x:=m.Text(); if len(x)>80{x=x[:80]}; fmt.Println(i,m.Role,m.Kind,m.Turn,c.Message(m),s,fmt.Sprintf("%q",x))}
}
