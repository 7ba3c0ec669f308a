import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A loopback proxy in front of a server. It can cut its connections, or stop passing data. */
export class TcpProxy implements AsyncDisposable {
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  readonly #server = createServer((client) => this.#join(client));
  #silent = false;

  private constructor(
    private readonly host: string,
    private readonly port: number,
  ) {}

  /** Starts a proxy in front of the server of a connection string. Returns it with a connection string that uses the proxy. */
  static async before(connectionString: string): Promise<[TcpProxy, string]> {
    const url = new URL(connectionString);
    const proxy = new TcpProxy(url.hostname, Number(url.port || 5432));
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    url.host = `127.0.0.1:${(proxy.#server.address() as AddressInfo).port}`;
    return [proxy, url.href];
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

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket): void {
    const server = connect({ host: this.host, port: this.port });
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.setNoDelay();
      from.on('error', () => {});
      from.on('data', (bytes) => to.write(bytes));
      from.on('close', () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
      if (this.#silent) from.pause();
    }
  }
}
