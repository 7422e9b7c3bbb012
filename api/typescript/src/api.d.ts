// Written by generate.mjs from api/openapi.json; change that and run it.

/** Answer is the model's answer, in one of two forms. */
export type Answer = {
  /** API names the form of Response. */
  api?: string
  /** Messages are the answer in neutral form. */
  messages?: Array<Message>
  /** Response is the provider's response body (of a stream, what it adds up to), with its usage. */
  response?: unknown
  /** Usage is what the provider counted; it replaces that in Response. */
  usage?: Usage
}

/** Append adds messages to the log: in neutral form, or as a provider's request body. All its messages count as new, unless If-Match names the version at which they begin ("0" with a whole history adds what is not there yet). */
export type Append = {
  /** API names the form of Body: anthropic, openai, responses or gemini. */
  api?: string
  /** Body is a request body of that API. */
  body?: unknown
  /** Messages are the new ones in neutral form. */
  messages?: Array<Message>
}

/** Appended is the state of a log after a write. */
export type Appended = {
  /** MessageIDs are those of the messages in the request, also of those that were there already. */
  message_ids: Array<string>
  /** Version is the number of messages in the log. */
  version: number
}

/** Artifacts is a page of what is known of content that was taken out of prompts, without the content. */
export type Artifacts = {
  /** Items are the artifacts of the page, ordered by id. */
  items: Array<ArtifactMetadata>
  /** Next is the cursor of the page after this one; empty at the end. */
  next?: string
}

/** Compact asks for a compaction now. The step must bring no messages. */
export type Compact = {
  /** API names the provider's form: anthropic, openai, responses or gemini. The answer holds a request body of it. Empty asks for a neutral prompt. */
  api?: string
  /** Base is the request around the messages in neutral form. Send Body or Base, not both. */
  base?: Prompt
  /** Body is a request body of that API, whose messages are those since the last step. */
  body?: unknown
  /** Budget bounds the whole request in tokens, if it should be smaller than the window. Compact, its dry run and its preview fill it; without one the policy's own target holds. */
  budget?: number
  /** Edits asks for the prompt as edits of the messages of the thread, for hosts that hold the messages themselves, with the ids that they sent. */
  edits?: boolean
  /** Policy names another policy than the daemon's to make the plan. Favor is what the policies auto and notes favor: quality, balanced or cost. */
  favor?: string
  /** Force has prepare compact now, for hosts that decide themselves when: to what the policy keeps or, when the conversation takes less, to half of it. Other operations refuse it. */
  force?: boolean
  /** Instructions are the user's wishes for the summaries of a compaction, for compact and for prepare with Force. Other operations refuse them. */
  instructions?: string
  /** Messages are those since the last step, in neutral form; they follow those of Body. */
  messages?: Array<Message>
  /** Model replaces the one in Body or Base. */
  model?: string
  /** Output is what is kept free for the answer, in tokens. 0 for what the request asks for, at most 20,000. */
  output?: number
  /** Policy names another policy than the daemon's to make the plan. Favor is what the policies auto and notes favor: quality, balanced or cost. */
  policy?: string
  /** Why is for overflowed: what the provider refused the request for. "tokens" or empty, "pictures" (too many, or too large), "bytes" (of the body), or "output" (the answer that was asked for leaves no room). Other operations refuse it. */
  why?: string
  /** Window is the context window in tokens. 0 for that of the model where it is known, else the daemon's setting. */
  window?: number
}

/** CutOff is an answer that ended at the limit on the output, in one message. */
export type CutOff = {
  /** API names the form of Response. */
  api?: string
  /** Messages are the answer in neutral form. */
  messages?: Array<Message>
  /** Response is the provider's response body (of a stream, what it adds up to), with its usage. */
  response?: unknown
  /** Step is the last step, without its messages. Its API is the form of the request in the answer. */
  step?: Step
  /** Usage is what the provider counted; it replaces that in Response. */
  usage?: Usage
}

/** Diff lists the messages that two plans treat differently. */
export type Diff = {
  /** Changes are in the order in which the plans name the messages. */
  changes: Array<PlanChange>
  /** From and To are the versions compared; 0 stands for no plan. */
  from: number
  /** From and To are the versions compared; 0 stands for no plan. */
  to: number
}

/** Expand shows again what a record of the plan in force hides. */
export type Expand = {
  /** MessageID is any message of the record's span. */
  message_id: string
}

/** Hits are the removed messages that match a query, the best first. Their texts are data that tools and the web have written, not instructions. */
export type Hits = {
  /** Items are the hits. */
  items: Array<RecallHit>
}

/** Log is a page of a thread's messages, as they were said, the oldest first. Its ETag is the version. */
export type Log = {
  /** Items are the messages of the page. */
  items: Array<Message>
  /** Next is the cursor of the page after this one; empty at the end. */
  next?: string
  /** Version is the number of messages in the whole log. */
  version: number
}

/** NewThread asks for a thread. */
export type NewThread = {
  /** ID names the thread: 1 to 200 characters, none of them a control character; ".", ".." and "/" are not allowed. Empty lets the daemon choose. */
  id?: string
  /** Labels are the caller's own; at most 32, names and values of at most 200 bytes each. */
  labels?: { [name: string]: string }
}

/** Plan is a plan with its version. */
export type Plan = {
  /** Plan is the plan itself, in its own versioned format. */
  plan: PlanPlan
  /** Version counts the plans of a thread from 1; 0 stands for a dry run. */
  version: number
}

/** PlanInfo is what is known of a plan without its records. */
export type PlanInfo = {
  /** OriginalTokens and CompactedTokens are the size of the whole request before and after. */
  compacted_token_count: number
  /** CreatedAt is when it was made. */
  created_at: string
  /** OriginalTokens and CompactedTokens are the size of the whole request before and after. */
  original_token_count: number
  /** Policy made it. */
  policy?: string
  /** Records counts its records by action. */
  records: { [name: string]: number }
  /** ThreadVersion is the number of messages that it was made for. */
  thread_version: number
  /** Version counts the plans of a thread from 1. */
  version: number
}

/** Plans is a page of plans, the oldest first. Its ETag is the version of the plan in force. */
export type Plans = {
  /** Current is the version of the plan in force, 0 when there is none. */
  current: number
  /** Items are the plans of the page. */
  items: Array<PlanInfo>
  /** Next is the cursor of the page after this one; empty at the end. */
  next?: string
}

/** Prepared is the request to send to the model. */
export type Prepared = {
  /** API is the provider's form of Body; empty with a neutral prompt. */
  api?: string
  /** Body is the request body for that API. */
  body?: unknown
  /** Edits turn the messages of the thread into those of the prompt, in the order of the thread; a message without an edit stays as the host has it. With them Body is empty, and Prompt is the request around the messages. */
  edits?: Array<Edit>
  /** Manifest says where each message of the prompt comes from and, in the answer of render, which records hide which messages. The other operations leave that list empty: it grows with the history. */
  manifest: RenderManifest
  /** Version and PlanVersion are those of the log and the plan that the prompt was made from. */
  plan_version: number
  /** Prompt is the request in neutral form, where no API was named. */
  prompt?: Prompt
  /** Tokens is the size of the whole request. */
  tokens: number
  /** Version and PlanVersion are those of the log and the plan that the prompt was made from. */
  version: number
}

/** Problem is the body of every answer that is not a success (RFC 9457). As an error it can be found with errors.As. */
export type Problem = {
  /** Detail says what is wrong with this request and what to do. */
  detail: string
  /** Want and Have are the version that the request named and the current one, where they differ. */
  have?: number
  /** Instance is the id of the request, as it stands in the daemon's logs. */
  instance?: string
  /** Path is the field or query parameter that the problem is about, as a JSON path. */
  path?: string
  /** RetryAfter is how long to wait before trying again, in seconds. */
  retry_after?: number
  /** Status is the HTTP status. */
  status: number
  /** Title says what the type means. */
  title: string
  /** Type names the kind of problem: the address of its description, whose fragment is what Kind returns. Callers branch on it. */
  type: string
  /** Want and Have are the version that the request named and the current one, where they differ. */
  want?: number
}

/** Remember adds to the memory block of a thread. */
export type Remember = {
  /** Entries are short notes, 1 to 100 of at most 4,000 bytes each. They have the role of the system: nothing that a tool or the web has written belongs there. */
  entries: Array<string>
}

/** Render asks for the prompt under a plan. Nothing is stored. */
export type Render = {
  /** PlanVersion is the plan; empty for the one in force, 0 for none. */
  plan_version?: number
  /** Step gives the request around the messages; its messages must be empty. */
  step?: Step
}

/** Step is what an agent is about to ask its model. Model, system and tools come from Body, a provider's request, or from Base; new messages from Body or from Messages. */
export type Step = {
  /** API names the provider's form: anthropic, openai, responses or gemini. The answer holds a request body of it. Empty asks for a neutral prompt. */
  api?: string
  /** Base is the request around the messages in neutral form. Send Body or Base, not both. */
  base?: Prompt
  /** Body is a request body of that API, whose messages are those since the last step. */
  body?: unknown
  /** Budget bounds the whole request in tokens, if it should be smaller than the window. Compact, its dry run and its preview fill it; without one the policy's own target holds. */
  budget?: number
  /** Edits asks for the prompt as edits of the messages of the thread, for hosts that hold the messages themselves, with the ids that they sent. */
  edits?: boolean
  /** Force has prepare compact now, for hosts that decide themselves when: to what the policy keeps or, when the conversation takes less, to half of it. Other operations refuse it. */
  force?: boolean
  /** Instructions are the user's wishes for the summaries of a compaction, for compact and for prepare with Force. Other operations refuse them. */
  instructions?: string
  /** Messages are those since the last step, in neutral form; they follow those of Body. */
  messages?: Array<Message>
  /** Model replaces the one in Body or Base. */
  model?: string
  /** Output is what is kept free for the answer, in tokens. 0 for what the request asks for, at most 20,000. */
  output?: number
  /** Why is for overflowed: what the provider refused the request for. "tokens" or empty, "pictures" (too many, or too large), "bytes" (of the body), or "output" (the answer that was asked for leaves no room). Other operations refuse it. */
  why?: string
  /** Window is the context window in tokens. 0 for that of the model where it is known, else the daemon's setting. */
  window?: number
}

/** Thread is what is known of a thread without its content. Its ETag is its version, a dot, and its plan version, such as "12.3". */
export type Thread = {
  /** About is what the thread is about, in a list with about=yes. */
  about?: ViewAbout
  /** CreatedAt is when the thread was created, ChangedAt when it was last written to. */
  changed_at?: string
  /** Compacting says that a compaction of the thread is running or waits to run. A list of threads does not say it. */
  compacting?: boolean
  /** CreatedAt is when the thread was created, ChangedAt when it was last written to. */
  created_at: string
  /** ID names the thread. */
  id: string
  /** Labels are the caller's own. */
  labels?: { [name: string]: string }
  /** PlanVersion is the version of the plan in force, 0 for none. Changes of the plan take it as If-Match. */
  plan_version: number
  /** Version is the number of messages in the log. Writes to the log take it as If-Match. */
  version: number
}

/** Threads is a page of threads, ordered by id. */
export type Threads = {
  /** Items are the threads of the page. */
  items: Array<Thread>
  /** Next is the cursor of the page after this one; empty at the end. */
  next?: string
}

/** Undo puts an earlier plan back in force. */
export type Undo = {
  /** Version is that of the plan; 0 for no plan, so that every message is sent as it was said. */
  version: number
}

export type ArtifactMetadata = {
  artifact_id: string
  bytes: number
  created_at: string
  digest?: string
  encryption_key_id?: string
  media_type: string
  message_ids?: Array<string>
  sensitivity: string
  tenant_id?: string
  thread_id: string
  tool?: string
  ttl_seconds?: number
  turn: number
}

/** Edit is a change to one message of the thread. InsertBefore may go with Omit or Content. */
export type Edit = {
  /** Content replaces the content of the message. */
  content?: Array<Part>
  /** InsertBefore are messages to insert before it: summaries, and restored content. */
  insert_before?: Array<Message>
  /** MessageID is the message; in the last edit it may be empty, for the end of the thread. */
  message_id?: string
  /** Omit removes the message. */
  omit?: boolean
}

/** Message is one message of a conversation in neutral form. A message with role "tool" holds exactly one part, a tool result. */
export type Message = {
  /** ID may be empty; then it is computed from the history. An id that the caller sets must be new in the thread; sending the same message with the same id again changes nothing. */
  id?: string
  /** Kind is injected for text that a harness sent in the user's name, attached for the user's material (files, selections), relayed for what another agent wrote, and recap for the summary of an earlier compaction; empty for a real message. */
  kind?: string
  /** Name is the participant's name, for providers that have one. */
  name?: string
  /** Parts are the content of the message, in order; [] for none. */
  parts: Array<Part> | null
  /** Role is system, user, assistant or tool. */
  role: string
  /** Time is when the message was made, if known. */
  time?: string
  /** Turn is set by the daemon. */
  turn?: number
}

/** Part is a piece of a message. Type decides which of the other fields count. */
export type Part = {
  /** API and Raw are the provider and the exact JSON of an opaque part or reasoning; it is sent to that provider only. */
  api?: string
  /** Arguments is the JSON that the model wrote, as a string, or the free text of a custom tool. */
  arguments?: string
  /** Author of a result is agent if another agent wrote it. */
  author?: string
  /** CallID pairs a call with its result. A call without it or without Tool is refused, as no provider accepts one. */
  call_id?: string
  /** CallType is the provider's type of a call that is not a plain function. */
  call_type?: string
  /** Started and Completed say when the tool ran. */
  completed?: string
  /** Content is what the model saw of a result: text, media and opaque parts. */
  content?: Array<Part>
  /** Data is the content of a media part in base64. */
  data?: string
  /** Denied of a result says that the agent's program did not run the call, because the user or a rule did not allow it: the content is the program's words, with the user's. */
  denied?: boolean
  /** Detail is the provider's setting of fidelity, such as low. */
  detail?: string
  /** Determinism is what the source of a replayable result looked like. */
  determinism?: ThreadDeterminism
  /** Durability of a result is ephemeral, anchoring, replayable or non_replayable; empty leaves it to the registry of tools. */
  durability?: string
  /** FileID names a file that was uploaded to the provider. */
  file_id?: string
  /** KeyFields of a result survive compaction. */
  key_fields?: { [name: string]: unknown }
  /** Kind of an opaque part is the provider's type name. */
  kind?: string
  /** Media is the class of a media part: image, document, audio, video or file. One of Data (base64), URL, FileID and Text has the content; none if nobody kept it. */
  media?: string
  /** MIME is the media type, such as image/png. */
  mime?: string
  /** Name is the file name or title of a media part. */
  name?: string
  /** Outcome of a result is success (also when empty), failure or partial. */
  outcome?: string
  /** API and Raw are the provider and the exact JSON of an opaque part or reasoning; it is sent to that provider only. */
  raw?: string
  /** Said of a result is what the user said in its content: answers to the tool's questions, and words about a call that was not allowed. The rest of the content is the tool's. */
  said?: Array<ThreadSaid>
  /** Signature is a provider's signature on reasoning or a call. */
  signature?: string
  /** Started and Completed say when the tool ran. */
  started?: string
  /** Structured is the content of a result as JSON, if the tool returned data. */
  structured?: unknown
  /** Text is the text itself, the readable text of an opaque part, or the text of a document. */
  text?: string
  /** Tool is the name of the tool. A result may leave it out when the thread holds the call. */
  tool?: string
  /** Type is text, reasoning, media, tool_call, tool_result or opaque. */
  type: string
  /** URL is where the content of a media part is. */
  url?: string
}

/** Prompt is what a model is asked, in neutral form. */
export type Prompt = {
  /** CachePoints are the positions of the messages after which a cached prefix should end, the most important first; -1 stands for the end of system and tools. */
  cache_points?: Array<number>
  /** MaxOutput is the largest answer asked for, in tokens. */
  max_output?: number
  /** Messages must be empty in a prompt that is the base of a step. */
  messages?: Array<Message>
  /** Model is the model's name. */
  model?: string
  /** System are the blocks of instructions, in order. */
  system?: Array<System>
  /** Tools are what the model may call. */
  tools?: Array<Tool>
}

/** System is one block of instructions. */
export type System = {
  /** Role is system, developer or instructions. */
  role?: string
  /** Text is the text of the block. */
  text: string
}

/** Tool is a tool that the model may call. */
export type Tool = {
  /** Description tells the model what it is for. */
  description?: string
  /** Name is the name that the model calls. */
  name: string
  /** Schema is the JSON schema of its arguments. */
  schema?: unknown
}

/** Usage is what a provider counted, in tokens. */
export type Usage = {
  /** CacheRead and CacheWrite are the parts of Input that were read from and written to the provider's prompt cache. */
  cache_read?: number
  /** CacheRead and CacheWrite are the parts of Input that were read from and written to the provider's prompt cache. */
  cache_write?: number
  /** Input is the whole request, cached or not. */
  input: number
  /** Output is the answer. */
  output: number
}

export type PlanCacheRule = {
  min_rounds: number
  offset_rounds: number
}

export type PlanChange = {
  from: PlanRef
  message_id: string
  to: PlanRef
}

export type PlanClearing = {
  preserved_fields?: { [name: string]: unknown }
  reason?: string
  span: ThreadSpan
  strategy?: string
  tokens_after?: number
  tokens_before?: number
}

export type PlanDigest = {
  artifacts?: Array<PlanDigestArtifact>
  hidden?: Array<PlanDigestHidden>
  memory_searches?: Array<PlanDigestSearch>
  tools?: { [name: string]: Array<PlanDigestOutput> }
}

export type PlanDigestArtifact = {
  mime: string
  path: string
  sources_used?: Array<string>
  visibility: string
}

export type PlanDigestHidden = {
  message_id: string
  path: string
  replacement_text: string
}

export type PlanDigestOutput = {
  bytes: number
  message_id: string
  outcome: string
  path: string
}

export type PlanDigestSearch = {
  hits: number
  paths?: Array<string>
  query: string
}

export type PlanExternalization = {
  artifact_id: string
  reason?: string
  rehydrate_hint?: string
  span: ThreadSpan
  strategy?: string
  summary: SummarySummary
  tokens_after?: number
  tokens_before?: number
}

export type PlanKept = {
  artifact_id: string
  message_id: string
}

export type PlanNote = {
  cites?: Array<string>
  id: string
  text: string
}

export type PlanPlan = {
  arrived?: number
  cache?: PlanCacheRule
  clearings: Array<PlanClearing> | null
  compacted_token_count: number
  counter?: string
  created_at: string
  drops: Array<PlanRemoval> | null
  edited?: number
  externalizations: Array<PlanExternalization> | null
  instructions?: string
  memory?: StateMemory
  notes?: Array<PlanNote>
  original_token_count: number
  pinned?: Array<string>
  policy?: string
  refused?: number
  round?: number
  schema_version: number
  summarizations: Array<PlanSummarization> | null
  thread_id: string
  thread_version: number
}

export type PlanRange = {
  compaction_digest: PlanDigest
  covered_turn_ids: Array<string> | null
  path: string
  split_turn_id?: string
  text?: string
  turn_context?: string
  type: string
}

export type PlanRef = {
  action: string
  index: number
}

export type PlanRemoval = {
  kept?: Array<PlanKept>
  reason?: string
  span: ThreadSpan
  strategy?: string
  tokens_after?: number
  tokens_before?: number
}

export type PlanReplacement = {
  role: string
  text: string
}

export type PlanSummarization = {
  kept?: Array<PlanKept>
  range?: PlanRange
  reason?: string
  span: ThreadSpan
  stand?: Array<PlanReplacement>
  state?: StateState
  strategy?: string
  summary: SummarySummary
  summary_token_count: number
  tokens_after?: number
  tokens_before?: number
}

export type QualityAsk = {
  class: string
  message_id: string
  turns_since_compaction: number
}

export type QualityMetrics = {
  agent_asked_for_context: boolean
  alerts: number
  asks?: Array<QualityAsk>
  compactions: number
  rehydration_requests: number
  rereads: number
  reruns: number
  task_completion?: string
  turns_since_compaction: number
  user_repeats: number
}

export type QualityOutcome = {
  task?: string
}

export type RecallHit = {
  action: string
  after?: RecallNeighbor
  also?: Array<string>
  artifact_id?: string
  author?: string
  before?: RecallNeighbor
  call?: string
  column?: number
  excerpt: string
  line: number
  lines: number
  message_id: string
  missing?: Array<string>
  near?: Array<string>
  others?: Array<string>
  role: string
  score: number
  summary: string
  thread_id: string
  time?: string
  tool?: string
  turn: number
}

export type RecallNeighbor = {
  message_id: string
  role: string
  text: string
}

export type RenderHidden = {
  message_id: string
  record: PlanRef
}

export type RenderManifest = {
  format_version: string
  hidden: Array<RenderHidden> | null
  messages: Array<RenderOrigin> | null
  repairs: Array<RenderRepair> | null
}

export type RenderOrigin = {
  message_id?: string
  record: PlanRef
  synthetic?: boolean
}

export type RenderRepair = {
  message_id: string
  what: string
}

export type StateCheck = {
  command: string
  dir?: string
  kind: string
  line?: string
  outcome: string
  since?: Array<string>
  sources?: Array<string>
  turn?: number
}

export type StateCommit = {
  branch?: string
  dir?: string
  hash?: string
  perhaps?: StateSeen
  pushed?: boolean
  sources?: Array<string>
  subject: string
  turn?: number
}

export type StateEdit = {
  operation: string
  path: string
  perhaps_committed?: boolean
  sources?: Array<string>
  turn?: number
}

export type StateItem = {
  by?: string
  id?: string
  pinned?: boolean
  status?: string
  text: string
}

export type StateMemory = {
  entries?: Array<string>
  summary?: string
}

export type StateOmitted = {
  checks?: number
  commits?: number
  edited?: number
  operations?: number
  refused?: number
  running?: number
}

export type StateOperation = {
  input?: string
  outcome: string
  reason?: string
  refused?: boolean
  sources?: Array<string>
  tool: string
  turn?: number
}

export type StateSeen = {
  sources?: Array<string>
  text: string
  turn?: number
}

export type StateState = {
  active_constraints?: Array<StateItem>
  agent_contributions?: Array<StateItem>
  artifacts?: Array<StateItem>
  key_decisions?: Array<StateItem>
  open_questions?: Array<StateItem>
  risks?: Array<StateItem>
  tasks?: Array<StateItem>
}

export type StateUnknown = {
  by: string
  sources?: Array<string>
  turn?: number
  what: string
}

export type StateWork = {
  again?: boolean
  below?: boolean
  branch?: StateSeen
  checks?: Array<StateCheck>
  commits?: Array<StateCommit>
  directory?: StateSeen
  edited?: Array<StateEdit>
  next?: StateSeen
  omitted?: StateOmitted
  operations?: Array<StateOperation>
  pull_request?: StateSeen
  refused?: Array<StateSeen>
  running?: Array<StateSeen>
  unknown?: Array<StateUnknown>
}

export type SummaryArtifactReference = {
  artifact_id: string
  description: string
  rehydrate_hint?: string
  sources?: Array<string>
  turn?: number
}

export type SummaryDecision = {
  decision: string
  rationale?: string
  sources?: Array<string>
  time?: string
  turn?: number
}

export type SummaryFile = {
  note?: string
  operations: Array<string> | null
  path: string
  sources?: Array<string>
  turn?: number
}

export type SummaryItem = {
  asked?: string
  score?: number
  sources?: Array<string>
  text: string
  turn?: number
}

export type SummaryOpenItem = {
  context?: string
  description: string
  priority?: string
  sources?: Array<string>
  turn?: number
}

export type SummaryStep = {
  detail?: string
  sources?: Array<string>
  status?: string
  text: string
}

export type SummarySummary = {
  artifacts?: Array<SummaryArtifactReference>
  conclusions?: Array<SummaryItem>
  constraints?: Array<SummaryItem>
  current_plan?: Array<SummaryStep>
  current_task?: string
  decisions?: Array<SummaryDecision>
  elsewhere?: Array<number>
  facts?: Array<SummaryItem>
  failed_attempts?: Array<SummaryItem>
  files?: Array<SummaryFile>
  identifiers?: Array<SummaryItem>
  open_items?: Array<SummaryOpenItem>
  reports?: Array<SummaryItem>
  requests?: Array<SummaryItem>
  span: ThreadSpan
  stated?: Array<SummaryItem>
  told?: SummarySummary
  tool_outcomes?: Array<SummaryToolOutcome>
  unlisted?: number
  work?: StateWork
}

export type SummaryToolOutcome = {
  error?: string
  input?: string
  key_fields?: { [name: string]: unknown }
  outcome: string
  sources?: Array<string>
  tool: string
  turn?: number
}

export type ThreadDeterminism = {
  content_hash?: string
  etag?: string
  mtime?: number
  version?: string
}

export type ThreadSaid = {
  asked?: string
  from?: number
  text: string
  to?: number
}

export type ThreadSpan = {
  first_turn: number
  last_turn: number
  message_ids: Array<string> | null
}

/** About is what a thread is about, for a list to choose from. */
export type ViewAbout = {
  /** Title is how the first request begins. Model got the last request, which was one of API; empty where no step was made. */
  api?: string
  /** Compacted is when the plan in force was made; missing without one. Before and After are the size of the request when it was made and under it, in tokens. */
  compacted_at?: string
  /** Title is how the first request begins. Model got the last request, which was one of API; empty where no step was made. */
  model?: string
  /** Title is how the first request begins. Model got the last request, which was one of API; empty where no step was made. */
  title?: string
  /** Compacted is when the plan in force was made; missing without one. Before and After are the size of the request when it was made and under it, in tokens. */
  tokens_after?: number
  /** Compacted is when the plan in force was made; missing without one. Before and After are the size of the request when it was made and under it, in tokens. */
  tokens_before?: number
}

/** Mark is a place where the agent itself compacted or cleared its history. */
export type ViewMark = {
  /** At is the position of the first message after it, Trigger the cause in the agent's words. */
  at: number
  /** At is the position of the first message after it, Trigger the cause in the agent's words. */
  trigger?: string
}

/** Message is a message of the log. */
export type ViewMessage = {
  /** Text is what it says, in views with texts; Cut says that it is shortened. */
  cut?: boolean
  /** Tool is the tool of a result, Failed that it failed. */
  failed?: boolean
  id: string
  /** Label is the message in a few words. */
  label: string
  /** Pinned: no plan may change it, by the policy's rules or the user's wish. */
  pinned?: boolean
  /** Record is the position in Records of the one that hides it, -1 for none. */
  record: number
  /** Role is system, user, assistant, tool, or harness for what a program wrote in the user's name. Turn counts from 1; 0 is before the first. */
  role: string
  /** Text is what it says, in views with texts; Cut says that it is shortened. */
  text?: string
  /** Role is system, user, assistant, tool, or harness for what a program wrote in the user's name. Turn counts from 1; 0 is before the first. */
  time?: string
  /** Tokens is its original size. */
  tokens: number
  /** Tool is the tool of a result, Failed that it failed. */
  tool?: string
  /** Role is system, user, assistant, tool, or harness for what a program wrote in the user's name. Turn counts from 1; 0 is before the first. */
  turn: number
}

/** Part is a message of the prompt, its system prompt (role system) or its tools (role tools). */
export type ViewPart = {
  /** Label and Text are missing for unchanged messages of the log. */
  cut?: boolean
  /** From is the position of its message in the log, or of the first that it stands for; -1 for none. */
  from: number
  /** Label and Text are missing for unchanged messages of the log. */
  label?: string
  /** Record is as in Message. */
  record: number
  role: string
  /** Label and Text are missing for unchanged messages of the log. */
  text?: string
  tokens: number
}

/** Pin keeps a message as it is in all later plans. */
export type ViewPin = {
  /** Free releases it. */
  free?: boolean
  /** MessageID is the message. */
  message_id: string
}

/** Plan is a plan that was in force. */
export type ViewPlan = {
  /** At is the position of the first message that came under it. */
  at: number
  /** Before and After are the size of the whole request when it was made, and under it. Counter counted them, where that is not the view's own. */
  counter?: string
  /** CreatedAt is when Policy made it, ThreadVersion the number of messages that it was made for. */
  created_at?: string
  /** CreatedAt is when Policy made it, ThreadVersion the number of messages that it was made for. */
  policy?: string
  /** Prefix is the size of the beginning that it left unchanged of the prompt before it, which a provider's cache still holds. */
  prefix_tokens: number
  /** Records counts its records by action. */
  records: { [name: string]: number } | null
  /** CreatedAt is when Policy made it, ThreadVersion the number of messages that it was made for. */
  thread_version: number
  /** Before and After are the size of the whole request when it was made, and under it. Counter counted them, where that is not the view's own. */
  tokens_after: number
  /** Before and After are the size of the whole request when it was made, and under it. Counter counted them, where that is not the view's own. */
  tokens_before: number
  /** Version counts the plans of a thread from 1; 0 for one that is not stored. */
  version: number
}

/** Record is what a plan does with some messages. */
export type ViewRecord = {
  /** Path names the record in the plan, such as summarizations[0]. */
  action: string
  /** Artifact names the content that was externalized. */
  artifact_id?: string
  /** Messages is how many it covers, First and Last are the positions of the outermost, FirstTurn and LastTurn their turns. */
  first: number
  /** Messages is how many it covers, First and Last are the positions of the outermost, FirstTurn and LastTurn their turns. */
  first_turn: number
  /** Messages is how many it covers, First and Last are the positions of the outermost, FirstTurn and LastTurn their turns. */
  last: number
  /** Messages is how many it covers, First and Last are the positions of the outermost, FirstTurn and LastTurn their turns. */
  last_turn: number
  /** Messages is how many it covers, First and Last are the positions of the outermost, FirstTurn and LastTurn their turns. */
  messages: number
  /** Path names the record in the plan, such as summarizations[0]. */
  path: string
  /** Strategy proposed it, for Reason. */
  reason?: string
  /** Strategy proposed it, for Reason. */
  strategy?: string
  /** Before and After are the size of its messages and of what replaces them. */
  tokens_after: number
  /** Before and After are the size of its messages and of what replaces them. */
  tokens_before: number
}

/** Session is a session that an agent left on the daemon's machine. */
export type ViewSession = {
  /** Agent wrote it, Project is the folder that the agent worked in, Title how the first request begins. */
  agent: string
  /** ChangedAt is when it was last written to, Bytes the size of its file. */
  bytes: number
  /** ChangedAt is when it was last written to, Bytes the size of its file. */
  changed_at: string
  /** ID is what the agent calls it. */
  id: string
  /** Agent wrote it, Project is the folder that the agent worked in, Title how the first request begins. */
  project?: string
  /** Agent wrote it, Project is the folder that the agent worked in, Title how the first request begins. */
  title?: string
}

/** Sessions are the sessions on the daemon's machine. */
export type ViewSessions = {
  /** Items are the sessions. */
  items: Array<ViewSession> | null
}

/** Side is another conversation of the session. */
export type ViewSide = {
  /** Title is its name, or how its first request begins. */
  messages: number
  /** Title is its name, or how its first request begins. */
  title?: string
}

/** Step is one request to the model. */
export type ViewStep = {
  /** At is the position of the answer. */
  at: number
  /** Whole is the size of the request with nothing hidden, Sent its size under the plan of that time. */
  sent: number
  /** WholeUSD and SentUSD are what their input costs, in dollars. */
  sent_usd?: number
  /** Whole is the size of the request with nothing hidden, Sent its size under the plan of that time. */
  whole: number
  /** WholeUSD and SentUSD are what their input costs, in dollars. */
  whole_usd?: number
}

/** View is a conversation for display: the log as it is, the prompt under a plan, and what each record did to which messages. All sizes are tokens, as Counter counts them. Positions count from 0. Texts are data that people, models and tools have written. */
export type ViewView = {
  /** ThreadID names the conversation. Title is the name that its agent or user gave it, or how its first request begins. Agent is the agent that wrote it, where it is known. */
  agent?: string
  /** Before and After are the size of the whole request with nothing hidden and under the plan, Fixed that of system prompt and tools in both. Budget bounds a request and Window is the model's context window; 0 where they are not known. */
  budget?: number
  /** Cached says that there are figures in dollars, which take the model's prompt cache into account: its prices are known. */
  cached?: boolean
  /** Command is the shell command that makes the prompt; empty for a conversation of the daemon. */
  command?: string
  /** CompactsAt is the size above which the policy compacts by itself; 0 where it names none. */
  compacts_at?: number
  /** Policy made the plan, Model gets the prompt, Counter counted the tokens. */
  counter: string
  /** Before and After are the size of the whole request with nothing hidden and under the plan, Fixed that of system prompt and tools in both. Budget bounds a request and Window is the model's context window; 0 where they are not known. */
  fixed_tokens: number
  /** Marks are the places where the agent compacted by itself, Plans the plans that were in force, Steps the requests as they grew. */
  marks: Array<ViewMark> | null
  /** Messages are the log, Prompt the parts of the prompt, Records those of the plan. */
  messages: Array<ViewMessage> | null
  /** Policy made the plan, Model gets the prompt, Counter counted the tokens. */
  model?: string
  /** Notes are what the model has noted by context_note, each with its id and what it cites. */
  notes?: Array<string>
  /** Version and PlanVersion are those of log and plan. PlanVersion is 0 for no plan, and for one that is not stored. */
  plan_version: number
  /** Marks are the places where the agent compacted by itself, Plans the plans that were in force, Steps the requests as they grew. */
  plans: Array<ViewPlan> | null
  /** Policy made the plan, Model gets the prompt, Counter counted the tokens. */
  policy?: string
  /** Messages are the log, Prompt the parts of the prompt, Records those of the plan. */
  prompt: Array<ViewPart> | null
  /** Messages are the log, Prompt the parts of the prompt, Records those of the plan. */
  records: Array<ViewRecord> | null
  /** Side are other conversations of the same session: those of sub-agents, and branches that the user left. */
  side?: Array<ViewSide>
  /** Marks are the places where the agent compacted by itself, Plans the plans that were in force, Steps the requests as they grew. */
  steps: Array<ViewStep> | null
  /** ThreadID names the conversation. Title is the name that its agent or user gave it, or how its first request begins. Agent is the agent that wrote it, where it is known. */
  thread_id: string
  /** ThreadID names the conversation. Title is the name that its agent or user gave it, or how its first request begins. Agent is the agent that wrote it, where it is known. */
  title?: string
  /** Before and After are the size of the whole request with nothing hidden and under the plan, Fixed that of system prompt and tools in both. Budget bounds a request and Window is the model's context window; 0 where they are not known. */
  tokens_after: number
  /** Before and After are the size of the whole request with nothing hidden and under the plan, Fixed that of system prompt and tools in both. Budget bounds a request and Window is the model's context window; 0 where they are not known. */
  tokens_before: number
  /** Version and PlanVersion are those of log and plan. PlanVersion is 0 for no plan, and for one that is not stored. */
  version: number
  /** Before and After are the size of the whole request with nothing hidden and under the plan, Fixed that of system prompt and tools in both. Budget bounds a request and Window is the model's context window; 0 where they are not known. */
  window?: number
}
