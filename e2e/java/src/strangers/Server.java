package strangers;

import static io.modelcontextprotocol.spec.McpSchema.*;

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServer.SyncSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncCompletionSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncPromptSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceTemplateSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncToolSpecification;
import io.modelcontextprotocol.server.McpSyncServer;
import io.modelcontextprotocol.server.McpSyncServerExchange;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.ProtocolVersions;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import org.apache.catalina.startup.Tomcat;

/**
 * A server with the official Java SDK, for e2e/servers.
 *
 * <pre>
 * java strangers.Server stdio
 * java strangers.Server http PORT
 * </pre>
 */
final class Server {
	private static final McpJsonMapper JSON = McpJsonDefaults.getMapper();
	private static final Map<String, Object> OBJECT = Map.of("type", "object");
	private static final Map<String, Object> NAMED = Map.of("type", "object", "properties",
		Map.of("name", Map.of("type", "string")), "required", List.of("name"));
	private static final AtomicInteger cancelled = new AtomicInteger();
	private static McpSyncServer server;

	private static CallToolResult text(String words) {
		return CallToolResult.builder().addTextContent(words).build();
	}

	private static String name(CallToolRequest request) {
		return (String) request.arguments().get("name");
	}

	private static SyncToolSpecification tool(String name, Map<String, Object> schema,
		BiFunction<McpSyncServerExchange, CallToolRequest, CallToolResult> handler) {
		return new SyncToolSpecification(new Tool.Builder().name(name).inputSchema(schema).build(), handler);
	}

	private static List<SyncToolSpecification> tools() {
		return List.of(
			tool("ask", OBJECT, Server::ask),
			tool("cancelled", OBJECT, (exchange, request) -> text(String.valueOf(cancelled.get()))),
			new SyncToolSpecification(new Tool.Builder().name("count").inputSchema(NAMED)
				.outputSchema(Map.of("type", "object", "properties", Map.of("letters", Map.of("type", "integer")),
					"required", List.of("letters"))).build(),
				(exchange, request) -> {
					int letters = name(request).length();
					return CallToolResult.builder().addTextContent(String.valueOf(letters))
						.structuredContent(Map.of("letters", letters)).build();
				}),
			tool("fail", OBJECT, (exchange, request) ->
				CallToolResult.builder().addTextContent("this tool fails always").isError(true).build()),
			tool("grow", NAMED, (exchange, request) -> {
				server.addTool(tool(name(request), OBJECT, (e, r) -> text("I am new")));
				server.addResource(resource("e2e://new/" + name(request)));
				return text("grown");
			}),
			tool("log", OBJECT, (exchange, request) -> {
				exchange.loggingNotification(new LoggingMessageNotification(LoggingLevel.INFO, "e2e", "All is well"));
				exchange.loggingNotification(new LoggingMessageNotification(LoggingLevel.ERROR, "e2e", "All is lost"));
				return text("logged");
			}),
			tool("shrink", NAMED, (exchange, request) -> {
				server.removeTool(name(request));
				server.removeResource("e2e://new/" + name(request));
				return text("shrunk");
			}),
			tool("touch", NAMED, (exchange, request) -> {
				server.notifyResourcesUpdated(new ResourcesUpdatedNotification(name(request)));
				return text("touched");
			}),
			tool("wait", OBJECT, (exchange, request) -> {
				exchange.progressNotification(new ProgressNotification(request.meta().get("progressToken"), 1, null, "waiting"));
				try {
					Thread.sleep(5000);
				} catch (InterruptedException e) {
					cancelled.incrementAndGet();
				}
				return text("nobody cancelled this call");
			}));
	}

	/** Asks for a name, an answer of the model and the roots, one after the other. */
	private static CallToolResult ask(McpSyncServerExchange exchange, CallToolRequest request) {
		ElicitResult name = exchange.createElicitation(ElicitRequest.builder("Your name?", NAMED).build());
		CreateMessageResult capital = exchange.createMessage(JSON.convertValue(Map.of("maxTokens", 9, "messages",
			List.of(Map.of("role", "user", "content", Map.of("type", "text", "text", "The capital of France?")))),
			CreateMessageRequest.class));
		ListRootsResult roots = exchange.listRoots();
		return text("%s %s says %s, in %s".formatted(name.action().name().toLowerCase(), name.content().get("name"),
			((TextContent) capital.content()).text(), roots.roots().get(0).uri()));
	}

	private static SyncResourceSpecification resource(String uri) {
		return new SyncResourceSpecification(new Resource.Builder().uri(uri).name(uri).build(), (exchange, request) ->
			contents(uri, "This is " + uri));
	}

	private static ReadResourceResult contents(String uri, String words) {
		return new ReadResourceResult(List.of(new TextResourceContents(uri, "text/plain", words)));
	}

	private static <S extends SyncSpecification<S>> McpSyncServer build(SyncSpecification<S> spec) {
		Prompt letter = JSON.convertValue(Map.of("name", "letter",
			"arguments", List.of(Map.of("name", "country"), Map.of("name", "city"))), Prompt.class);
		ResourceTemplate words = JSON.convertValue(Map.of("uriTemplate", "e2e://words/{word}", "name", "words"), ResourceTemplate.class);
		return spec.serverInfo("java", "1.0.0").instructions("Try everything.").requestTimeout(Duration.ofMinutes(1))
			.capabilities(new ServerCapabilities.Builder().tools(true).resources(true, true).prompts(true).logging().completions().build())
			.tools(tools())
			.resources(List.of(1, 2, 3, 4, 5).stream().map(n -> resource("e2e://" + n)).toList())
			.resourceTemplates(new SyncResourceTemplateSpecification(words, (exchange, request) ->
				contents(request.uri(), request.uri().substring("e2e://words/".length()).toUpperCase())))
			.prompts(new SyncPromptSpecification(letter, (exchange, request) -> JSON.convertValue(Map.of("messages",
				List.of(Map.of("role", "user", "content", Map.of("type", "text", "text", "Write to " + request.arguments().get("city"))))),
				GetPromptResult.class)))
			.completions(new SyncCompletionSpecification(new PromptReference("letter"), (exchange, request) -> {
				boolean france = request.context() != null && "France".equals(request.context().arguments().get("country"));
				List<String> values = (france ? List.of("Lyon", "Paris") : List.of("Oslo", "Rome")).stream()
					.filter(city -> city.startsWith(Objects.requireNonNullElse(request.argument().value(), ""))).toList();
				return JSON.convertValue(Map.of("completion", Map.of("values", values)), CompleteResult.class);
			}))
			.build();
	}

	/** Input that says when it has ended, which the SDK keeps to itself. */
	private static final class Input extends FilterInputStream {
		final CountDownLatch ended = new CountDownLatch(1);

		Input(InputStream in) {
			super(in);
		}

		@Override
		public int read() throws IOException {
			return noted(super.read());
		}

		@Override
		public int read(byte[] buffer, int offset, int length) throws IOException {
			return noted(super.read(buffer, offset, length));
		}

		private int noted(int n) {
			if (n < 0) ended.countDown();
			return n;
		}
	}

	public static void main(String[] args) throws Exception {
		if (args[0].equals("stdio")) {
			Input input = new Input(System.in);
			server = build(McpServer.sync(new StdioServerTransportProvider(JSON, input, System.out) {
				@Override
				public List<String> protocolVersions() { // of itself it speaks the first alone
					return List.of(ProtocolVersions.MCP_2024_11_05, ProtocolVersions.MCP_2025_03_26, ProtocolVersions.MCP_2025_06_18,
						ProtocolVersions.MCP_2025_11_25);
				}
			}));
			input.ended.await();
			System.exit(0);
		}
		HttpServletStreamableServerTransportProvider transport =
			HttpServletStreamableServerTransportProvider.builder().jsonMapper(JSON).mcpEndpoint("/mcp").build();
		server = build(McpServer.sync(transport));
		Tomcat tomcat = new Tomcat();
		tomcat.setBaseDir(Files.createTempDirectory("strangers").toString());
		tomcat.setHostname("127.0.0.1");
		tomcat.setPort(Integer.parseInt(args[1]));
		tomcat.getConnector().setProperty("address", "127.0.0.1");
		var context = tomcat.addContext("", null);
		Tomcat.addServlet(context, "mcp", transport).setAsyncSupported(true);
		context.addServletMappingDecoded("/mcp", "mcp");
		tomcat.start();
		tomcat.getServer().await();
	}
}
