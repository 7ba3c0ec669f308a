import { NestFactory } from '@nestjs/core';
import { Payments } from './payments.module.js';

const app = await NestFactory.create(Payments);
app.enableShutdownHooks();
await app.listen(process.env['PORT'] ?? 3000);
