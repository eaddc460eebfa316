// Runs lines with srt's library; the protocol is that of driven.py. Arguments: the module, the settings file.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const [, , module, settings] = process.argv
const { SandboxManager } = await import(pathToFileURL(module).href)

async function run(line) {
  const wrapped = await SandboxManager.wrapWithSandbox(line)
  const child = spawn(wrapped, { shell: '/bin/bash', stdio: 'ignore' })
  const status = await new Promise(resolve => child.on('close', code => resolve(code ?? -1)))
  SandboxManager.cleanupAfterCommand()
  return status
}

function answer(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}

await SandboxManager.initialize(JSON.parse(readFileSync(settings, 'utf8')))
answer({ ready: true })
for await (const text of createInterface({ input: process.stdin })) {
  const began = performance.now()
  const status = await run(JSON.parse(text))
  answer({ seconds: (performance.now() - began) / 1000, status })
}
await SandboxManager.reset()
process.exit(0)
