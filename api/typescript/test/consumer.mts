// What users write, and what the frameworks' declarations must go on saying: checked by tsc, never run.
import { createAgent } from 'langchain'
import { Runner, type Session } from '@openai/agents-core'
import { generateText, isStepCount, wrapLanguageModel, type LanguageModelMiddleware, type PrepareStepFunction } from 'ai'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { Client, ProblemError, type ClientOptions } from '@palimpsest-ai/client'
import { palimpsest } from '@palimpsest-ai/client/ai'
import { PalimpsestSession } from '@palimpsest-ai/client/agents'
import { palimpsestMiddleware } from '@palimpsest-ai/client/langchain'

declare const model: LanguageModelV4

const options: ClientOptions = { url: 'http://127.0.0.1:7433', key: 'plk_' }
const client = new Client(options)
export const version: Promise<number> = client.log('thread').then((log) => log.version)
export const kind = (err: unknown) => (err instanceof ProblemError ? err.kind : '')

const p = palimpsest({ thread: 'thread', client, window: 200000, onError: (err: unknown) => console.error(err) })
export const step: PrepareStepFunction<any> = p.prepareStep
export const middleware: LanguageModelMiddleware = p.middleware
export const text = generateText({ model: wrapLanguageModel({ model, middleware: p.middleware }), prompt: 'x', tools: { ...p.tools }, prepareStep: p.prepareStep, stopWhen: isStepCount(2) })

/** What prepareStep builds the history from. */
type Step = Parameters<PrepareStepFunction<any>>[0]
export const read: Array<keyof Step> = ['model', 'messages', 'steps', 'initialMessages', 'responseMessages', 'initialInstructions', 'experimental_steeringMessages']

export const session: Session = new PalimpsestSession({ thread: 'thread' })
export const runner = new Runner({ modelProvider: new PalimpsestSession({ thread: 'thread' }).models({ getModel: () => { throw new Error() } }) })

export const agent = createAgent({ model: 'any', middleware: [palimpsestMiddleware({ window: 200000 })] })
// @ts-expect-error a window is a number
palimpsest({ thread: 'thread', window: '200000' })
