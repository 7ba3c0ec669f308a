#!/usr/bin/env node
import { runCommand } from './command/run-command.js';

// Closes the emulator if its output is no longer read, for example `payments-emulator --help | head`.
const outputClosed = new AbortController();
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    outputClosed.abort();
  });
}

const result = await runCommand(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  closed: outputClosed.signal,
});
if (typeof result === 'number') {
  process.exitCode = result;
} else {
  const close = (): void => void result.close();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, close);
  outputClosed.signal.addEventListener('abort', close);
  if (outputClosed.signal.aborted) close();
}
