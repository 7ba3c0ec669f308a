import type { Server } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { OnModuleDestroy } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';

/**
 * Makes each response close its connection while the shop closes. The server closes only when all its connections have
 * closed, and an open page would otherwise use its connection again and again.
 */
@Injectable()
export class CloseConnectionsAtShutdownService implements OnModuleDestroy {
  constructor(private readonly host: HttpAdapterHost) {}

  onModuleDestroy(): void {
    const server = this.host.httpAdapter.getHttpServer() as Server;
    server.prependListener('request', (_, response) => response.setHeader('connection', 'close'));
  }
}
