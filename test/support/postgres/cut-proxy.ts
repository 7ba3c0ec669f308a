import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A way to a server that a test may cut or silence at the moment it chooses. */
export class CutProxy {
  readonly #sockets = new Set<Socket>();
  /** Called with what a client sends; returns whether the client is to hear nothing more, and be cut. */
  swallowAnswerTo: (sent: Buffer) => boolean = () => false;
  /** Whether nothing passes either way, and no connection ends. */
  silent = false;
  readonly #server = createServer((client) => this.#join(client));

  private constructor(private readonly target: { host: string; port: number }) {}

  /** A proxy before the server of a connection string, and the string to connect through it. */
  static async before(connectionString: string): Promise<[CutProxy, string]> {
    const url = new URL(connectionString);
    const proxy = new CutProxy({ host: url.hostname, port: Number(url.port || 5432) });
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    url.host = `127.0.0.1:${(proxy.#server.address() as AddressInfo).port}`;
    return [proxy, url.href];
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async end(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket): void {
    const server = connect(this.target);
    let deaf = false;
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    client.on('data', (sent) => {
      if (this.silent) return;
      deaf ||= this.swallowAnswerTo(sent);
      server.write(sent);
    });
    server.on('data', (answer) => {
      if (this.silent) return;
      // It has been answered: what was asked for has happened, and the one who asked will not know.
      if (deaf) client.destroy();
      else client.write(answer);
    });
  }
}
