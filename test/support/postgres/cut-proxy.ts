import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A proxy to a server. A test can cut its connections, or stop all traffic without an error. */
export class CutProxy {
  readonly #sockets = new Set<Socket>();
  /**
   * Called with the data that a client sends. After it has returned true, the server still gets that data, but the proxy
   * cuts the client instead of passing the response on.
   */
  cutAfter: (sent: Buffer) => boolean = () => false;
  /** Whether the proxy drops all data, in both directions, and keeps the connections open. */
  silent = false;
  readonly #server = createServer((client) => this.#join(client));

  private constructor(private readonly target: { host: string; port: number }) {}

  /** Starts a proxy in front of a server. Returns it with the connection string of the proxy. */
  static async before(connectionString: string): Promise<[CutProxy, string]> {
    const url = new URL(connectionString);
    const proxy = new CutProxy({ host: url.hostname, port: Number(url.port || 5432) });
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    url.host = `127.0.0.1:${(proxy.#server.address() as AddressInfo).port}`;
    return [proxy, url.href];
  }

  /** Cuts all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Cuts all connections and stops the proxy. */
  async end(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket): void {
    const server = connect(this.target);
    let cutAtResponse = false;
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
      cutAtResponse ||= this.cutAfter(sent);
      server.write(sent);
    });
    server.on('data', (response) => {
      if (this.silent) return;
      // The server has run the statement, and the client will not receive the result.
      if (cutAtResponse) client.destroy();
      else client.write(response);
    });
  }
}
