import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A loopback proxy in front of a server. It can cut its connections, stop passing data, and close its port. */
export class TcpProxy implements AsyncDisposable {
  /**
   * Called with the data that a client sends. If the function returns true, the server still gets this data, but the
   * proxy cuts the connection of the client instead of passing the response on.
   */
  cutAfter: (sent: Buffer) => boolean = () => false;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #server: Server | undefined;
  #port = 0;
  #silent = false;

  private constructor(private readonly target: URL) {}

  /**
   * Starts a proxy in front of the server of a URL or connection string. Returns the proxy, and a URL that uses the
   * proxy.
   */
  static async before(target: string): Promise<[TcpProxy, string]> {
    const url = new URL(target);
    const proxy = new TcpProxy(new URL(target));
    await proxy.open();
    url.host = `127.0.0.1:${proxy.#port}`;
    return [proxy, url.href];
  }

  /** Listens. After {@link close}, it listens at the same port again. */
  async open(): Promise<void> {
    const server = createServer((client) => this.#join(client));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Cuts every connection and accepts no more. */
  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server!.close(resolve));
  }

  /** Cuts every connection. */
  cut(): void {
    for (const [client, server] of this.#pairs) {
      client.destroy();
      server.destroy();
    }
  }

  /** `true` stops passing data and keeps the connections open; `false` passes the data that waits and continues. */
  silence(silent: boolean): void {
    this.#silent = silent;
    for (const sockets of this.#pairs) {
      for (const socket of sockets) {
        if (silent) socket.pause();
        else socket.resume();
      }
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #join(client: Socket): void {
    const server = connect({ host: this.target.hostname, port: Number(this.target.port || 5432) });
    const pair = [client, server] as const;
    let cutAtResponse = false;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [server, client]] as const) {
      from.setNoDelay();
      from.on('error', () => {});
      from.on('data', (bytes) => {
        if (from === client) cutAtResponse ||= this.cutAfter(bytes);
        // The server has run the statement, and the client will not receive the result.
        if (from === server && cutAtResponse) client.destroy();
        else to.write(bytes);
      });
      from.on('close', () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
      if (this.#silent) from.pause();
    }
  }
}
