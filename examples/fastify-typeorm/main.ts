import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { TypeOrmModule } from '@nestjs/typeorm';
import { PaymentsModule, readPaymentsEnvironment } from 'nestjs-payments';
import { postgresInbox } from 'nestjs-payments/postgres';
import { DataSource } from 'typeorm';
import { Booking, Orders } from './orders.js';

const connectionString = process.env['DATABASE_URL']!;

@Module({
  imports: [
    TypeOrmModule.forRoot({
      type: 'postgres',
      url: connectionString,
      entities: [Booking],
      synchronize: true, // in production, use migrations
    }),
    PaymentsModule.forRootAsync({
      inject: [DataSource],
      useFactory: (dataSource: DataSource) => ({
        ...readPaymentsEnvironment(),
        inbox: postgresInbox({
          connectionString,
          runTransaction: (work) =>
            dataSource.transaction((tx) =>
              work({ tx, query: (text, values) => tx.query(text, values) }),
            ),
        }),
      }),
    }),
  ],
  providers: [Orders],
})
export class AppModule {}

const app = await NestFactory.create(AppModule, new FastifyAdapter());
app.enableShutdownHooks();
await app.listen(process.env['PORT'] ?? 3000);
