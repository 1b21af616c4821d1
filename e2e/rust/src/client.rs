//! The client: it does what it reads, as the head of clients/stranger.mjs says.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::*,
    service::{NotificationContext, RequestContext, RunningService, ServiceError},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, from_value, json, to_value};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    sync::oneshot,
    task::AbortHandle,
};

/// User passes on to the driver what the server asks and tells.
#[derive(Clone, Default)]
struct User {
    version: ProtocolVersion,
    asked: Arc<AtomicU64>,
    waiting: Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>,
    progressing: Arc<AtomicU64>, // the operation that wants to hear of progress
}

fn say(message: Value) {
    println!("{message}");
}

fn tell(kind: &str, what: Value) {
    say(json!({"tell": kind, "what": what}));
}

impl User {
    async fn ask(&self, kind: &str, params: Value) -> Value {
        let id = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let (answer, answered) = oneshot::channel();
        self.waiting.lock().unwrap().insert(id, answer);
        say(json!({"ask": id, "kind": kind, "params": params}));
        answered.await.expect("the driver answers")
    }
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let can = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": true},
            "extensions": {"io.modelcontextprotocol/tasks": {}}});
        let mut info = ClientConfig::new(from_value(can).unwrap(), Implementation::new("rust", "1.0.0"));
        info.protocol_version = self.version.clone();
        info
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(from_value(self.ask("sample", to_value(params).unwrap()).await).unwrap())
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(from_value(self.ask("roots", Value::Null).await).unwrap())
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(from_value(self.ask("elicit", to_value(params).unwrap()).await).unwrap())
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let of = self.progressing.load(Ordering::SeqCst);
        say(json!({"tell": "progress", "of": of, "what": params}));
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        tell("log", to_value(params).unwrap());
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        tell("updated", json!(params.uri));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        tell("tools", Value::Null);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        tell("prompts", Value::Null);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        tell("resources", Value::Null);
    }
}

type Session = RunningService<RoleClient, User>;

async fn connect(transport: &str, revision: &str, target: &[&str]) -> Session {
    let version: ProtocolVersion = from_value(json!(revision)).unwrap();
    // Of itself it offers its latest, but it speaks the others too.
    let lifecycle = if revision >= "2026" {
        ClientLifecycleMode::Discover { preferred_versions: vec![version.clone()] }
    } else {
        ClientLifecycleMode::Initialize
    };
    let user = User { version, ..Default::default() };
    let connected = if transport == "stdio" {
        let mut command = Command::new(target[0]);
        command.args(&target[1..]);
        let process = TokioChildProcess::new(command).expect("the server starts");
        user.serve_with_lifecycle(process, lifecycle).await
    } else {
        user.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(target[0]), lifecycle).await
    };
    connected.expect("the server answers")
}

/// What can come of an operation.
type Outcome = Result<Value, ServiceError>;

fn plain<T: serde::Serialize>(result: T) -> Outcome {
    Ok(to_value(result).unwrap())
}

/// Does one operation.
async fn perform(session: &Session, listening: &Listening, id: u64, op: &str, mut p: Value) -> Outcome {
    match op {
        "listTools" => plain(session.list_tools(from_value(p).unwrap()).await?),
        "listResources" => plain(session.list_resources(from_value(p).unwrap()).await?),
        "listResourceTemplates" => plain(session.list_resource_templates(from_value(p).unwrap()).await?),
        "listPrompts" => plain(session.list_prompts(from_value(p).unwrap()).await?),
        "callTool" => {
            if p["progress"] == true {
                session.service().progressing.store(id, Ordering::SeqCst);
            }
            p.as_object_mut().unwrap().remove("progress");
            plain(session.call_tool(from_value(p).unwrap()).await?)
        }
        "startTask" => match session.call_tool_once(from_value(p).unwrap()).await? {
            CallToolResponse::Task(task) => plain(task),
            _ => Err(ServiceError::UnexpectedResponse),
        },
        "getTask" => plain(session.get_task(from_value(p).unwrap()).await?),
        "updateTask" => plain(session.update_task(from_value(p).unwrap()).await?),
        "cancelTask" => plain(session.cancel_task(from_value(p).unwrap()).await?),
        "readResource" => {
            if p["fresh"] == true {
                session.clear_response_cache().await;
            }
            plain(session.read_resource(ReadResourceRequestParams::new(p["uri"].as_str().unwrap())).await?)
        }
        "getPrompt" => plain(session.get_prompt(from_value(p).unwrap()).await?),
        "complete" => plain(session.complete(from_value(p).unwrap()).await?),
        "ping" => {
            let request = ClientRequest::PingRequest(PingRequest::default());
            session.send_request(request).await.map(|_| json!({}))
        }
        "setLoggingLevel" => plain(session.set_level(from_value(p).unwrap()).await?),
        "subscribe" => plain(session.subscribe(from_value(p).unwrap()).await?),
        "unsubscribe" => plain(session.unsubscribe(from_value(p).unwrap()).await?),
        "listen" => listen(session, listening, from_value(p).unwrap()).await,
        "unlisten" => {
            let (stop, follower) = listening.lock().unwrap().remove(&p["listening"].as_u64().unwrap()).unwrap();
            stop.send(()).unwrap();
            follower.await.expect("the subscription ends").map(|()| json!({}))
        }
        _ => panic!("no such operation: {op}"),
    }
}

/// The subscriptions that are open: how to end each, and what follows it.
type Listening = Arc<Mutex<HashMap<u64, (oneshot::Sender<()>, tokio::task::JoinHandle<Result<(), ServiceError>>)>>>;

async fn listen(session: &Session, listening: &Listening, filter: SubscriptionFilter) -> Outcome {
    let mut subscription = session.listen(filter).await?;
    let (stop, mut stopped) = oneshot::channel();
    let follower = tokio::spawn(async move {
        loop {
            let event = tokio::select! {
                _ = &mut stopped => return subscription.cancel().await,
                event = subscription.next() => event?,
            };
            match event {
                Some(ServerNotification::ResourceUpdatedNotification(n)) => tell("updated", json!(n.params.uri)),
                Some(ServerNotification::ToolListChangedNotification(_)) => tell("tools", Value::Null),
                Some(ServerNotification::PromptListChangedNotification(_)) => tell("prompts", Value::Null),
                Some(ServerNotification::ResourceListChangedNotification(_)) => tell("resources", Value::Null),
                Some(other) => tell("fault", json!(format!("not subscribed to: {other:?}"))),
                None => return Ok(()),
            }
        }
    });
    let mut open = listening.lock().unwrap();
    let id = open.len() as u64;
    open.insert(id, (stop, follower));
    Ok(json!({"listening": id}))
}

fn failure(error: ServiceError) -> Value {
    match error {
        ServiceError::McpError(e) => to_value(e).unwrap(),
        other => json!({"message": other.to_string()}),
    }
}

pub async fn main(transport: &str, revision: &str, target: &[&str]) {
    let session = Arc::new(connect(transport, revision, target).await);
    let info = session.peer_info().expect("the server tells who it is");
    tell("connected", json!({
        "revision": info.protocol_version, "server": info.server_info, "instructions": info.instructions,
        "capabilities": info.capabilities, "keeps": revision >= "2026", "tasks": "handled",
    }));
    let listening = Listening::default();
    let running: Arc<Mutex<HashMap<u64, AbortHandle>>> = Default::default();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        let mut message: Value = serde_json::from_str(&line).unwrap();
        if let Some(id) = message["answer"].as_u64() {
            let answer = session.service().waiting.lock().unwrap().remove(&id).unwrap();
            let _ = answer.send(message["result"].take());
            continue;
        }
        let op = message["op"].as_str().unwrap().to_string();
        if op == "cancel" {
            let of = message["of"].as_u64().unwrap();
            if let Some(task) = running.lock().unwrap().remove(&of) {
                task.abort(); // which gives up the request
                say(json!({"id": of, "error": {"message": "cancelled"}}));
            }
            continue;
        }
        let id = message["id"].as_u64().unwrap();
        if op == "close" {
            for (_, task) in running.lock().unwrap().drain() {
                task.abort();
            }
            while Arc::strong_count(&session) > 1 {
                tokio::task::yield_now().await;
            }
            Arc::into_inner(session).unwrap().cancel().await.expect("the session ends");
            say(json!({"id": id, "result": {}}));
            return;
        }
        let params = message["params"].take();
        let (session, listening, done) = (session.clone(), listening.clone(), running.clone());
        let mut handles = running.lock().unwrap();
        let task = tokio::spawn(async move {
            let outcome = perform(&session, &listening, id, &op, params).await;
            if done.lock().unwrap().remove(&id).is_none() {
                return; // it was cancelled
            }
            say(match outcome {
                Ok(result) => json!({"id": id, "result": if result.is_null() { json!({}) } else { result }}),
                Err(error) => json!({"id": id, "error": failure(error)}),
            });
        });
        handles.insert(id, task.abort_handle());
    }
}
