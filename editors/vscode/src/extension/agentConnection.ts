/** From the settings to an agent that is ready: find it, check its version, start it or attach to it, introduce ourselves. */
import type { InitializeResponse } from "@agentclientprotocol/sdk";
import { type GooseError, describeError, isGooseError, subprocessSpawn } from "../shared/errors";
import type { ProcessStatus, VersionStatus } from "../shared/types";
import { AcpClient, type ClientHandlers, type ClientInfo, REQUEST_TIMEOUT_MS } from "./acpClient";
import { type DiscoveryEnvironment, PRODUCTS, type Product, discoverBinary } from "./binaryDiscovery";
import { KILL_TIMEOUT_MS, type Spawn, Subprocess } from "./subprocess";
import { StdioTransport, type Transport, WebSocketTransport, acpAddress } from "./transport";
import { type VersionRun, judgeVersion, missing, runVersion } from "./version";
import { windowsHint } from "./windowsHint";

export interface AgentSettings {
  readonly binaryPath: string;
  readonly agent: "auto" | Product;
  /** What follows `acp` on the command line. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Not empty: attach to this server instead of starting a process. */
  readonly serverUrl: string;
}

export interface ReadyAgent {
  readonly client: AcpClient;
  readonly info: InitializeResponse;
  /** Which program it is, or the address of the server. */
  readonly name: string;
}

export interface ConnectionEvents {
  status(status: ProcessStatus, error?: GooseError): void;
  version(status: VersionStatus): void;
  ready(agent: ReadyAgent): void;
  /** The agent that was ready is gone without being asked to go. */
  lost(error: GooseError): void;
  sessionUpdate: ConstructorParameters<typeof AcpClient>[2]["sessionUpdate"];
  log(text: string): void;
}

export interface ConnectionOptions {
  readonly settings: () => AgentSettings;
  readonly token: () => Promise<string | undefined>;
  readonly cwd: () => string;
  readonly environment: DiscoveryEnvironment;
  readonly clientInfo: ClientInfo;
  readonly handlers: ClientHandlers;
  readonly events: ConnectionEvents;
  readonly spawn?: Spawn;
  readonly runVersion?: (path: string) => Promise<VersionRun>;
  readonly timeoutMs?: number;
  readonly killTimeoutMs?: number;
}

export class AgentConnection {
  readonly #subprocess: Subprocess;
  #agent: ReadyAgent | undefined;
  /** The client of the attempt that counts; it exists before the agent has introduced itself. */
  #client: AcpClient | undefined;
  /** Each attempt has its number: what an attempt that was overtaken still finds out is dropped. */
  #attempt = 0;

  constructor(private readonly options: ConnectionOptions) {
    const { events } = options;
    const status = (next: ProcessStatus, error?: GooseError) => {
      if (error?._tag === "SubprocessCrashError") this.#lose(error);
      else events.status(next, error);
    };
    this.#subprocess = new Subprocess({ status, stderr: events.log }, options.spawn, options.killTimeoutMs ?? KILL_TIMEOUT_MS);
  }

  get agent(): ReadyAgent | undefined {
    return this.#agent;
  }

  /** Connects anew: what runs is ended first, the binary is looked for again. Never rejects: what went wrong is an event. */
  async connect(): Promise<void> {
    const attempt = ++this.#attempt;
    this.#drop();
    const { settings, events } = this.options;
    try {
      if (settings().serverUrl.trim() !== "") await this.#attach(attempt, settings().serverUrl.trim());
      else await this.#start(attempt);
    } catch (error) {
      if (attempt !== this.#attempt) return;
      this.#drop();
      const known = isGooseError(error) ? error : subprocessSpawn(this.#target(), describeError(error));
      await this.#subprocess.stop();
      if (attempt === this.#attempt) events.status("error", known);
    }
  }

  async stop(): Promise<void> {
    this.#attempt += 1;
    this.#drop();
    await this.#subprocess.stop();
    this.options.events.status("stopped");
  }

  async #start(attempt: number): Promise<void> {
    const { settings, environment, events, cwd } = this.options;
    const { agent, binaryPath, args, env } = settings();
    const products = agent === "auto" ? PRODUCTS : [agent];
    const discovery = discoverBinary({ configuredPath: binaryPath, products }, environment);
    if ("error" in discovery) {
      await this.#block(attempt, { ...missing(products[0] ?? "gander"), ...windowsHint(environment.platform, cwd()) }, discovery.error);
      return;
    }
    const { path } = discovery.found;
    const check = judgeVersion(path, await (this.options.runVersion ?? runVersion)(path));
    if (attempt !== this.#attempt) return;
    if (check.error !== undefined) {
      await this.#block(attempt, check.status, check.error);
      return;
    }
    events.log(`${check.product} ${check.status.detectedVersion ?? ""}: ${path}`);
    const child = await this.#subprocess.start({ path, args: ["acp", ...args], cwd: cwd(), env: { ...environment.env, ...env } });
    if (attempt !== this.#attempt) return;
    events.version(check.status);
    await this.#introduce(attempt, new StdioTransport(child.stdin, child.stdout), check.product);
  }

  async #attach(attempt: number, url: string): Promise<void> {
    await this.#subprocess.stop();
    if (attempt !== this.#attempt) return;
    this.options.events.status("starting");
    const transport = await WebSocketTransport.connect(acpAddress(url), await this.options.token(), this.#timeoutMs());
    if (attempt !== this.#attempt) {
      transport.close();
      return;
    }
    this.options.events.status("running");
    await this.#introduce(attempt, transport, url);
  }

  async #introduce(attempt: number, transport: Transport, name: string): Promise<void> {
    const { events, handlers, clientInfo } = this.options;
    const client = new AcpClient(transport, handlers, {
      sessionUpdate: events.sessionUpdate,
      log: events.log,
      // A process that ends closes its output and then exits: the exit says more, so a closed pipe alone is no news.
      closed: (reason) => {
        if (attempt === this.#attempt && transport instanceof WebSocketTransport) this.#lose(subprocessSpawn(name, reason));
      },
    }, this.#timeoutMs());
    this.#client = client;
    const info = await client.initialize(clientInfo);
    if (attempt !== this.#attempt) {
      client.dispose();
      return;
    }
    this.#agent = { client, info, name };
    events.ready(this.#agent);
  }

  /** A blocked state never starts a process, and ends the one that runs. */
  async #block(attempt: number, status: VersionStatus, error: GooseError): Promise<void> {
    await this.#subprocess.stop();
    if (attempt !== this.#attempt) return;
    this.options.events.version(status);
    this.options.events.status("error", error);
  }

  #lose(error: GooseError): void {
    const wasReady = this.#agent !== undefined;
    // An attempt that was still waiting for this agent has nothing to add to why it is gone.
    this.#attempt += 1;
    this.#drop();
    this.options.events.status("error", error);
    if (wasReady) this.options.events.lost(error);
  }

  /** Everything that is pending is rejected. */
  #drop(): void {
    this.#agent = undefined;
    this.#client?.dispose();
    this.#client = undefined;
  }

  #timeoutMs(): number {
    return this.options.timeoutMs ?? REQUEST_TIMEOUT_MS;
  }

  #target(): string {
    const { serverUrl, binaryPath } = this.options.settings();
    return serverUrl || binaryPath || "the agent";
  }
}
