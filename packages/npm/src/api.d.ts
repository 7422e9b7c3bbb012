// Written by generate.mjs from api/openapi.json; change that and run it.

/** Answer is what the model said, in one of two forms. */
export type Answer = {
  /** API names the form of Response. */
  api?: string
  /** Messages are the answer in neutral form. */
  messages?: Array<Message>
  /** Response is the provider's response body (of a stream, what it adds up to). Its usage is taken too. */
  response?: unknown
  /** Usage is what the provider counted; it goes before that in Response. */
  usage?: Usage
}

/** Append adds messages to the log: in neutral form, or as a provider's request body, whose messages are all taken as new ones unless If-Match names the version from which they count ("0" with a whole history adds what is not there yet). */
export type Append = {
  /** API names the form of Body: anthropic, openai, responses or gemini. */
  api?: string
  /** Body is a request body of that API. */
  body?: unknown
  /** Messages are the new ones in neutral form. */
  messages?: Array<Message>
}

/** Appended says where a log stands after a write. */
export type Appended = {
  /** MessageIDs are those of the messages that were sent, also of those that were there already. */
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
  /** Base is the request around the messages in neutral form. Not both. */
  base?: Prompt
  /** Body is a request body of that API: the request around the messages, and in it the messages that came since the last step. */
  body?: unknown
  /** Budget bounds the whole request in tokens, where it should be smaller than the window. */
  budget?: number
  /** Edits asks for the answer as changes to the messages of the thread, for hosts that hold the messages themselves and know them by the ids that they brought. */
  edits?: boolean
  /** Policy makes the plan in place of the daemon's own, by its name. Favor is what the policy auto favours: quality, balanced or cost. */
  favor?: string
  /** Force has prepare compact now, for hosts that say themselves when: to what the policy keeps or, where the conversation takes less, to half of it. Other operations refuse it. */
  force?: boolean
  /** Instructions are what the user wants the summaries of a compaction to keep in mind: of compact, and of prepare with Force. Other operations refuse them. */
  instructions?: string
  /** Messages came since the last step, in neutral form; after those of Body. */
  messages?: Array<Message>
  /** Model stands in place of the one in Body or Base. */
  model?: string
  /** Output is what is kept free for the answer, in tokens. 0 is what the request asks for, at most 20,000. */
  output?: number
  /** Policy makes the plan in place of the daemon's own, by its name. Favor is what the policy auto favours: quality, balanced or cost. */
  policy?: string
  /** Window is the model's context window in tokens. 0 is that of the model, where it is known, else the daemon's own setting. */
  window?: number
}

/** CutOff is an answer that ended at the limit on the output, in one message. */
export type CutOff = {
  /** API names the form of Response. */
  api?: string
  /** Messages are the answer in neutral form. */
  messages?: Array<Message>
  /** Response is the provider's response body (of a stream, what it adds up to). Its usage is taken too. */
  response?: unknown
  /** Step is the last step, without its messages. Its API is the form of the request that comes back. */
  step?: Step
  /** Usage is what the provider counted; it goes before that in Response. */
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

/** Hits are the removed messages that match a query, the best first. Their texts are data that tools and the web have written, and no instructions. */
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
  /** OriginalTokens and CompactedTokens are the whole request before and after. */
  compacted_token_count: number
  /** CreatedAt is when it was made. */
  created_at: string
  /** OriginalTokens and CompactedTokens are the whole request before and after. */
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
  /** Edits make the messages of the prompt of those of the thread, in the order of the thread; a message that is in none of them stays as the host has it. Where they were asked for, Body is empty and Prompt has no messages: it is what stands around them. */
  edits?: Array<Edit>
  /** Manifest says where each message of the prompt came from and, in the answer of render, what was hidden by which record. A step leaves that list empty: it grows with the history. */
  manifest: RenderManifest
  /** Version and PlanVersion are those that the prompt was made from. */
  plan_version: number
  /** Prompt is the request in neutral form, where no API was named. */
  prompt?: Prompt
  /** Tokens is the size of the whole request. */
  tokens: number
  /** Version and PlanVersion are those that the prompt was made from. */
  version: number
}

/** Problem is the body of every answer that is not a success (RFC 9457). As an error it can be found with errors.As. */
export type Problem = {
  /** Detail says what is wrong with this request and what to do. */
  detail: string
  /** Want and Have are the version that the request named and the one that is there, where they differ. */
  have?: number
  /** Instance is the id of the request, as it stands in the daemon's logs. */
  instance?: string
  /** Path is the field of the request that is meant, as a JSON path. */
  path?: string
  /** RetryAfter is how long to wait before trying again, in seconds. */
  retry_after?: number
  /** Status is the HTTP status. */
  status: number
  /** Title says what the kind means; it is the same for all problems of a type. */
  title: string
  /** Type names the kind of problem: the address of its description, whose fragment is what Kind returns. Callers branch on it. */
  type: string
  /** Want and Have are the version that the request named and the one that is there, where they differ. */
  want?: number
}

/** Remember adds to the memory block of a thread. */
export type Remember = {
  /** Entries are short notes, 1 to 100 of at most 4,000 bytes each. They speak in the system's role: nothing that a tool or the web has written belongs there. */
  entries: Array<string>
}

/** Render asks for the prompt as it is, or was, under a plan. Nothing is stored. */
export type Render = {
  /** PlanVersion is the plan; nil is the one in force, 0 is none. */
  plan_version?: number
  /** Step gives the request around the messages; its messages must be empty. */
  step?: Step
}

/** Step is what an agent is about to ask its model. Model, system and tools come from Body, a provider's request, or from Base; new messages from Body or from Messages. */
export type Step = {
  /** API names the provider's form: anthropic, openai, responses or gemini. The answer holds a request body of it. Empty asks for a neutral prompt. */
  api?: string
  /** Base is the request around the messages in neutral form. Not both. */
  base?: Prompt
  /** Body is a request body of that API: the request around the messages, and in it the messages that came since the last step. */
  body?: unknown
  /** Budget bounds the whole request in tokens, where it should be smaller than the window. */
  budget?: number
  /** Edits asks for the answer as changes to the messages of the thread, for hosts that hold the messages themselves and know them by the ids that they brought. */
  edits?: boolean
  /** Force has prepare compact now, for hosts that say themselves when: to what the policy keeps or, where the conversation takes less, to half of it. Other operations refuse it. */
  force?: boolean
  /** Instructions are what the user wants the summaries of a compaction to keep in mind: of compact, and of prepare with Force. Other operations refuse them. */
  instructions?: string
  /** Messages came since the last step, in neutral form; after those of Body. */
  messages?: Array<Message>
  /** Model stands in place of the one in Body or Base. */
  model?: string
  /** Output is what is kept free for the answer, in tokens. 0 is what the request asks for, at most 20,000. */
  output?: number
  /** Window is the model's context window in tokens. 0 is that of the model, where it is known, else the daemon's own setting. */
  window?: number
}

/** Thread is what is known of a thread without its content. Its ETag is its version, a dot, and its plan version, such as "12.3". */
export type Thread = {
  /** About is what the thread is about, where a list was asked for that. */
  about?: ViewAbout
  /** CreatedAt is when the thread was created, ChangedAt when it was last written to. */
  changed_at?: string
  /** Compacting says that a compaction of the thread is being made, or waits to be. A list of threads does not say it. */
  compacting?: boolean
  /** CreatedAt is when the thread was created, ChangedAt when it was last written to. */
  created_at: string
  /** ID names the thread. */
  id: string
  /** Labels are the caller's own. */
  labels?: { [name: string]: string }
  /** PlanVersion is the version of the plan in force, 0 when there is none. Changes of the plan take it as If-Match. */
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

/** Undo puts an earlier plan in force again. */
export type Undo = {
  /** Version is that of the plan; 0 stands for no plan, so that everything is shown as it was said. */
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
  /** Kind is injected for text that a harness sent in the user's name, and recap for the summary of an earlier compaction; empty for a real message. */
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
  /** CachePoints are the positions of the messages after which a cached prefix should end; -1 stands for the end of system and tools. */
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

export type PlanPlan = {
  arrived?: number
  cache?: PlanCacheRule
  clearings: Array<PlanClearing> | null
  compacted_token_count: number
  counter?: string
  created_at: string
  drops: Array<PlanRemoval> | null
  externalizations: Array<PlanExternalization> | null
  instructions?: string
  memory?: StateMemory
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
  also?: Array<string>
  artifact_id?: string
  call?: string
  column?: number
  excerpt: string
  line: number
  lines: number
  message_id: string
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
  kind: string
  line?: string
  outcome: string
  since?: Array<string>
  sources?: Array<string>
  turn?: number
}

export type StateCommit = {
  branch?: string
  hash?: string
  pushed?: boolean
  sources?: Array<string>
  subject: string
  turn?: number
}

export type StateEdit = {
  operation: string
  path: string
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

export type StateWork = {
  again?: boolean
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
  sources?: Array<string>
  status?: string
  text: string
}

export type SummarySummary = {
  artifacts?: Array<SummaryArtifactReference>
  changes?: Array<SummaryItem>
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
  tool_outcomes?: Array<SummaryToolOutcome>
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

export type ThreadSpan = {
  first_turn: number
  last_turn: number
  message_ids: Array<string> | null
}

/** About is what a thread is about, for people who choose one. */
export type ViewAbout = {
  /** Compacted is when the plan in force was made; it is missing where there is none. Before and After are the request when it was made and under it, in tokens. */
  compacted_at?: string
  /** Title is how the first request begins. */
  title?: string
  /** Compacted is when the plan in force was made; it is missing where there is none. Before and After are the request when it was made and under it, in tokens. */
  tokens_after?: number
  /** Compacted is when the plan in force was made; it is missing where there is none. Before and After are the request when it was made and under it, in tokens. */
  tokens_before?: number
}

/** Mark is a place where the agent lost sight of what stood before. */
export type ViewMark = {
  /** At is the position of the first message after it, Trigger the agent's word for the cause. */
  at: number
  /** At is the position of the first message after it, Trigger the agent's word for the cause. */
  trigger?: string
}

/** Message is a message of the log. */
export type ViewMessage = {
  /** Text is what it says, where it was asked for; Cut that it is not all. */
  cut?: boolean
  /** Tool is the tool of a result, Failed that it failed. */
  failed?: boolean
  id: string
  /** Label is the message in a few words. */
  label: string
  /** Pinned: no plan may touch it, by the policy's rules or the user's word. */
  pinned?: boolean
  /** Record is the position in Records of what hides it, -1 where nothing does. */
  record: number
  /** Role is system, user, assistant, tool, or harness for what a program put in the user's name. Turn counts from 1, 0 is before the first. */
  role: string
  /** Text is what it says, where it was asked for; Cut that it is not all. */
  text?: string
  /** Role is system, user, assistant, tool, or harness for what a program put in the user's name. Turn counts from 1, 0 is before the first. */
  time?: string
  /** Tokens is its size as it was said. */
  tokens: number
  /** Tool is the tool of a result, Failed that it failed. */
  tool?: string
  /** Role is system, user, assistant, tool, or harness for what a program put in the user's name. Turn counts from 1, 0 is before the first. */
  turn: number
}

/** Part is a message of the prompt, or what stands before the messages: its system prompt (role system) and its tools (role tools). */
export type ViewPart = {
  /** Label and Text are there where it is not a message of the log as it was said. */
  cut?: boolean
  /** From is the position of the message that it is, or of the first that it stands for; -1 for none. */
  from: number
  /** Label and Text are there where it is not a message of the log as it was said. */
  label?: string
  /** Record is as in Message. */
  record: number
  role: string
  /** Label and Text are there where it is not a message of the log as it was said. */
  text?: string
  tokens: number
}

/** Pin keeps a message from the plans that follow. */
export type ViewPin = {
  /** Free gives it free again. */
  free?: boolean
  /** MessageID is the message. */
  message_id: string
}

/** Plan is a plan that was in force. */
export type ViewPlan = {
  /** At is the position of the first message that came under it. */
  at: number
  /** CreatedAt is when it was made, ThreadVersion the number of messages that it was made for, Policy what made it. */
  created_at?: string
  /** CreatedAt is when it was made, ThreadVersion the number of messages that it was made for, Policy what made it. */
  policy?: string
  /** Prefix is how much of the prompt before it stayed as it was, from the beginning, so that a provider's cache still holds it. */
  prefix_tokens: number
  /** Records counts its records by action. */
  records: { [name: string]: number } | null
  /** CreatedAt is when it was made, ThreadVersion the number of messages that it was made for, Policy what made it. */
  thread_version: number
  /** Before and After are the whole request when it was made and under it. */
  tokens_after: number
  /** Before and After are the whole request when it was made and under it. */
  tokens_before: number
  /** Version counts the plans of a thread from 1; 0 is one that is only shown. */
  version: number
}

/** Record is what a plan does with some messages. */
export type ViewRecord = {
  /** Path names the record in the plan, such as summarizations[0]. */
  action: string
  /** Artifact names the content that was externalized. */
  artifact_id?: string
  /** Messages is how many there are, First and Last the positions of the outermost, FirstTurn and LastTurn their turns. */
  first: number
  /** Messages is how many there are, First and Last the positions of the outermost, FirstTurn and LastTurn their turns. */
  first_turn: number
  /** Messages is how many there are, First and Last the positions of the outermost, FirstTurn and LastTurn their turns. */
  last: number
  /** Messages is how many there are, First and Last the positions of the outermost, FirstTurn and LastTurn their turns. */
  last_turn: number
  /** Messages is how many there are, First and Last the positions of the outermost, FirstTurn and LastTurn their turns. */
  messages: number
  /** Path names the record in the plan, such as summarizations[0]. */
  path: string
  /** Strategy proposed it, for the Reason. */
  reason?: string
  /** Strategy proposed it, for the Reason. */
  strategy?: string
  /** Before and After are what its messages took and what stands for them. */
  tokens_after: number
  /** Before and After are what its messages took and what stands for them. */
  tokens_before: number
}

/** Session is a session that an agent left on the daemon's machine. */
export type ViewSession = {
  /** Agent wrote it, Project is the folder that it was about, Title how the first request begins. */
  agent: string
  /** ChangedAt is when it was last written to, Bytes the size of its file. */
  bytes: number
  /** ChangedAt is when it was last written to, Bytes the size of its file. */
  changed_at: string
  /** ID is what the agent calls it. */
  id: string
  /** Agent wrote it, Project is the folder that it was about, Title how the first request begins. */
  project?: string
  /** Agent wrote it, Project is the folder that it was about, Title how the first request begins. */
  title?: string
}

/** Sessions are the sessions on the daemon's machine. */
export type ViewSessions = {
  /** Items are the sessions. */
  items: Array<ViewSession> | null
}

/** Step is one request to the model. */
export type ViewStep = {
  /** At is the position of the answer. */
  at: number
  /** Whole is the request with nothing hidden, Sent as it was under the plan of that time. */
  sent: number
  /** WholeUSD and SentUSD are what their input costs, in dollars. */
  sent_usd?: number
  /** Whole is the request with nothing hidden, Sent as it was under the plan of that time. */
  whole: number
  /** WholeUSD and SentUSD are what their input costs, in dollars. */
  whole_usd?: number
}

/** View is a conversation to be looked at: the log as it is, the prompt under a plan, and what became of which message by which record. All sizes are tokens, as Counter counts them. Positions count from 0. Texts are data that people, models and tools have written. */
export type ViewView = {
  /** ThreadID names the conversation, Title is the short name that its agent or user gave it, or how its first request begins, Agent what wrote it, where that is known. */
  agent?: string
  /** Before and After are the whole request with nothing hidden and under the plan, Fixed what system prompt and tools take of both. Budget bounds a request and Window is the model's context window; 0 where they are not known. */
  budget?: number
  /** Cached says that the figures in dollars take the model's prompt cache into account; they are there where its price is known. */
  cached?: boolean
  /** Command is how the prompt is made again, as a line for a shell; empty where a daemon holds the conversation. */
  command?: string
  /** Policy made the plan, Model is asked, Counter counted. */
  counter: string
  /** Before and After are the whole request with nothing hidden and under the plan, Fixed what system prompt and tools take of both. Budget bounds a request and Window is the model's context window; 0 where they are not known. */
  fixed_tokens: number
  /** Marks are the places where the agent compacted by itself, Plans the plans that were in force, Steps the requests as they grew. */
  marks: Array<ViewMark> | null
  /** Messages are the log, Prompt what stands in the prompt, Records what the plan does. */
  messages: Array<ViewMessage> | null
  /** Policy made the plan, Model is asked, Counter counted. */
  model?: string
  /** Version and PlanVersion are those of log and plan. PlanVersion is 0 where no plan is in force, and for a plan that is only shown. */
  plan_version: number
  /** Marks are the places where the agent compacted by itself, Plans the plans that were in force, Steps the requests as they grew. */
  plans: Array<ViewPlan> | null
  /** Policy made the plan, Model is asked, Counter counted. */
  policy?: string
  /** Messages are the log, Prompt what stands in the prompt, Records what the plan does. */
  prompt: Array<ViewPart> | null
  /** Messages are the log, Prompt what stands in the prompt, Records what the plan does. */
  records: Array<ViewRecord> | null
  /** Marks are the places where the agent compacted by itself, Plans the plans that were in force, Steps the requests as they grew. */
  steps: Array<ViewStep> | null
  /** ThreadID names the conversation, Title is the short name that its agent or user gave it, or how its first request begins, Agent what wrote it, where that is known. */
  thread_id: string
  /** ThreadID names the conversation, Title is the short name that its agent or user gave it, or how its first request begins, Agent what wrote it, where that is known. */
  title?: string
  /** Before and After are the whole request with nothing hidden and under the plan, Fixed what system prompt and tools take of both. Budget bounds a request and Window is the model's context window; 0 where they are not known. */
  tokens_after: number
  /** Before and After are the whole request with nothing hidden and under the plan, Fixed what system prompt and tools take of both. Budget bounds a request and Window is the model's context window; 0 where they are not known. */
  tokens_before: number
  /** Version and PlanVersion are those of log and plan. PlanVersion is 0 where no plan is in force, and for a plan that is only shown. */
  version: number
  /** Before and After are the whole request with nothing hidden and under the plan, Fixed what system prompt and tools take of both. Budget bounds a request and Window is the model's context window; 0 where they are not known. */
  window?: number
}
