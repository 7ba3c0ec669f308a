import type { RunningProcess } from '../processes/running-process.ts';

/** The process of an engine's server, which a subclass starts. */
export abstract class ServerProcess {
  protected process: RunningProcess | undefined;

  /** Kills the server with SIGKILL. */
  async kill(): Promise<void> {
    await this.process?.kill();
  }

  /** Pauses the server, so that it keeps its connections and does not answer. */
  pause(): void {
    this.process?.signal('SIGSTOP');
  }

  resume(): void {
    this.process?.signal('SIGCONT');
  }

  /** Ends the server in order. */
  async stop(): Promise<void> {
    await this.process?.kill('SIGTERM');
  }
}
